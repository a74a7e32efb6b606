import { QueryError } from 'osl-compiler';
import type { Runner } from './runner.js';
import type { UpstreamStatement } from './statement.js';

const HEALTHY_MS = 2_000;

/** Why a governed session does not answer in time; `busy`: others have them all, and the upstream may be well. */
export type UnhealthyReason =
  | 'busy'
  | 'no answer in time'
  | 'it cannot be reached, or cut the session'
  | 'it refuses the session';

/** Of a server that no session was had with since the start. */
export const UNREACHED: UnhealthyReason = 'it cannot be reached, or cut the session';

/** Null where a governed session answers. */
export async function ailmentOf(runner: Runner): Promise<UnhealthyReason | null> {
  try {
    await probe(runner, 'SELECT 1::pg_catalog.int4', HEALTHY_MS);
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) return 'it refuses the session';
    if (error.entry === 'timedOut') return 'no answer in time';
    return error.entry === 'overloaded' ? 'busy' : 'it cannot be reached, or cut the session';
  }
}

/**
 * Runs a statement of ours, of one int4, for nobody, and drops what it gives.
 *
 * @param ms what it may take
 * @throws as `Runner.runStatement`, where it is not answered
 */
export async function probe(runner: Runner, sql: string, ms: number): Promise<void> {
  const statement: UpstreamStatement = {
    sql,
    asks: 'rows',
    planMode: 'auto',
    parameterOids: [],
    columnOids: [23],
  };
  const options = { subject: null, resultFormats: [], maxRows: 0, maxBytes: 0, timeoutMs: ms, signal: null };
  await runner.runStatement(statement, [], options, { write: () => undefined });
}
