import { type GovernedPlan, InternalError, sourceProbes } from 'osl-compiler';
import type { Runner } from './runner.js';
import type { ExecuteOptions, StatementReads } from './statement.js';
import { StatementFault } from './upstream-error.js';

const PROBE_MS = 5_000;
const NOTHING = { write: () => undefined };

/**
 * Rethrows `error` of a run of `plan`. If the database could not make sense of the statement, the tables are checked
 * first: if one differs from the manifest, its operator must fix it; otherwise our SQL is wrong, which is our fault
 * and never reported as the database's.
 *
 * @throws QueryError `sourceGone`, `sourceChanged`; InternalError if our SQL is wrong
 */
export async function throwCause(
  error: unknown,
  runner: Runner,
  { query }: GovernedPlan,
  reads: StatementReads,
  { subject, signal }: Pick<ExecuteOptions, 'subject' | 'signal'>,
): Promise<never> {
  if (!(error instanceof StatementFault)) throw error;
  const options = { subject, signal, resultFormats: [], maxRows: 0, maxBytes: 0, timeoutMs: PROBE_MS };
  for (const { sql, columnOids } of sourceProbes(query)) {
    const probe = { sql, columnOids, reads, asks: 'rows', planMode: 'auto', parameterOids: [] } as const;
    await runner.runStatement(probe, [], options, NOTHING);
  }
  if (error.inText === null) throw error;
  throw new InternalError(`the database does not understand a statement of ours: ${error.inText}`);
}
