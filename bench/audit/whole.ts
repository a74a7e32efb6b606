import { verifyAuditLog } from '../../audit/index.js';

/** A figure counts only for a log that its verifier accepts, with all records in it. */
export async function requireWhole(dir: string, records: number): Promise<void> {
  const verdict = await verifyAuditLog(dir);
  if (verdict.problem !== null) throw new Error(`the log is damaged: ${verdict.problem.message}`);
  if (verdict.records < records) throw new Error(`the log holds ${verdict.records} of ${records} records`);
}
