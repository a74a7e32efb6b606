import { type GovernedPlan, InternalError, sourceProbes } from 'osl-compiler';
import type { Runner } from './runner.js';
import type { ExecuteOptions, StatementReads } from './statement.js';
import { StatementFault } from './upstream-error.js';

const PROBE_MS = 5_000;
const NOTHING = { write: () => undefined };

/**
 * Rethrows `error` of a run of `plan`; but where the database could not make sense of the statement, the cause of that.
 * The tables are looked at as the statement does: if one is not as the manifest declares it, its operator mends it; if
 * all are, the statement itself is wrong, which is a fault of ours and never told as one of the database.
 *
 * @throws QueryError `sourceGone`, `sourceChanged`; InternalError for SQL of ours that is wrong
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
