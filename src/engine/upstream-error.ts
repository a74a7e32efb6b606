import { QueryError, queryError } from 'osl-compiler';
import type { UpstreamError } from './engine.js';

/** The fields of an ErrorResponse body. */
export function parseErrorResponse(body: Buffer): UpstreamError {
  const fields = new Map<string, string>();
  let at = 0;
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at + 1);
    if (end < 0) break;
    fields.set(String.fromCharCode(body[at] ?? 0), body.toString('utf8', at + 1, end));
    at = end + 1;
  }
  return {
    sqlstate: fields.get('C') ?? 'XX000',
    message: fields.get('M') ?? '',
    detail: fields.get('D') ?? null,
    hint: fields.get('H') ?? null,
    routine: fields.get('R') ?? null,
    schema: fields.get('s') ?? null,
    table: fields.get('t') ?? null,
    column: fields.get('c') ?? null,
    constraint: fields.get('n') ?? null,
    dataType: fields.get('d') ?? null,
  };
}

/** What we say in the upstream's place, where it says nothing any more. */
export function inItsPlace(sqlstate: string, message: string): UpstreamError {
  return parseErrorResponse(Buffer.from(`C${sqlstate}\0M${message}\0\0`));
}

/** Connection failures, and the server's own ends of a session, are one thing to a caller. */
export function connectionLost(): QueryError {
  return queryError('execution', { sqlstate: '08006' });
}

/** The upstream takes other settings than the one that judged them: zones differ from server to server. */
export function unknownSetting(): QueryError {
  return queryError('unresolvable', {
    detail: 'the database of this query does not know a setting of this session, such as its time zone',
    hint: 'SET another one, or RESET it',
  });
}

/** What a caller is told of `sqlstate`; `backstopSeconds` is the session's own statement timeout. */
export function executionError(sqlstate: string, backstopSeconds: number): QueryError {
  // The upstream complains of a parameter's bytes, which are the caller's; the connection is sound.
  if (sqlstate === '08P01') return queryError('execution', { sqlstate: '22P03' });
  if (sqlstate === '57014') return queryError('timedOut', { seconds: backstopSeconds });
  if (sqlstate.startsWith('57P') || sqlstate.startsWith('08')) return connectionLost();
  return queryError('execution', { sqlstate });
}

/** What the caller is told of a statement that `signal` stopped: the reason it was aborted with, or that it was cancelled. */
export function stopError({ reason }: AbortSignal): QueryError {
  return reason instanceof QueryError ? reason : queryError('cancelled', {});
}
