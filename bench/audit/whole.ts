import { verifyAuditLog } from '../../audit/index.js';

/** Requires that the verifier accepts the log and that it contains all records; otherwise the figure is invalid. */
export async function requireWhole(dir: string, records: number): Promise<void> {
  const verdict = await verifyAuditLog(dir);
  if (verdict.problem !== null) throw new Error(`the log is damaged: ${verdict.problem.message}`);
  if (verdict.records < records) throw new Error(`the log holds ${verdict.records} of ${records} records`);
}
