import { QueryError } from 'osl-compiler';
import type { Runner } from './runner.js';
import type { UpstreamStatement } from './statement.js';

const HEALTHY_MS = 2_000;

/** Why a governed session does not answer in time; `busy`: others have them all, and the upstream may be well. */
export type Ailment =
  | 'busy'
  | 'no answer in time'
  | 'it cannot be reached, or cut the session'
  | 'it refuses the session';

/** Null where a governed session answers. */
export async function ailmentOf(runner: Runner): Promise<Ailment | null> {
  const statement: UpstreamStatement = {
    sql: 'SELECT 1::pg_catalog.int4',
    asks: 'rows',
    parameterOids: [],
    columnOids: [23],
  };
  const options = {
    subject: null,
    resultFormats: [],
    maxRows: 0,
    maxBytes: 0,
    timeoutMs: HEALTHY_MS,
    signal: null,
  };
  try {
    await runner.runStatement(statement, [], options, { write: () => undefined });
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) return 'it refuses the session';
    if (error.entry === 'timedOut') return 'no answer in time';
    return error.entry === 'overloaded' ? 'busy' : 'it cannot be reached, or cut the session';
  }
}
