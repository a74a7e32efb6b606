import { charactersBefore, hintOn, type QueryError, queryError } from 'osl-compiler';
import { WireError } from '../../../wire/index.js';

/** By this name of Postgres' own, pgjdbc, Npgsql and asyncpg know that they may prepare the statement again. */
const PLAN_CHANGED = 'RevalidateCachedQuery';

/** What a client is told that runs a statement which is another than it was told of. */
export function planChanged(): WireError {
  const { message, hint, sqlstate } = queryError('planChanged', {});
  return new WireError('ERROR', sqlstate, message, { hint: hint ?? undefined, routine: PLAN_CHANGED });
}

/** The error as the protocol says it. DETAIL carries our code and the request id; nothing of the upstream's. */
export function wireError(
  error: QueryError,
  requestId: string,
  text: string,
  severity: 'ERROR' | 'FATAL' = 'ERROR',
): WireError {
  const wait = error.retryAfterSeconds === null ? '' : `, try again in ${error.retryAfterSeconds} s`;
  const offset = error.position?.offset;
  return new WireError(severity, error.sqlstate, error.message, {
    detail: `${error.code}, request ${requestId}${wait}`,
    hint: hintOn('wire', error.hint) ?? undefined,
    routine: error.entry === 'planChanged' ? PLAN_CHANGED : undefined,
    position: offset === undefined ? undefined : charactersBefore(text, offset) + 1,
  });
}
