import { QueryError } from 'osl-compiler';
import type { LimitBucket } from '../../../policy/index.js';
import type { RequestCall } from './call.js';
import type { Caller } from './caller.js';
import type { RequestParts } from './parts.js';
import { refuseUnauthenticated } from './refusals.js';
import { respond } from './respond.js';

/** Handles a call that reads no data, for any valid token. @throws QueryError */
export function admitCall(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  bucket: LimitBucket,
): Promise<Caller> {
  return respond<Caller, Caller>(parts, call, {
    action,
    bucket,
    decide: (caller) => caller,
    answer: (caller) => caller,
  });
}

/** Rate-limit buckets for malformed calls, by action; all others count as queries. */
const BUCKETS: ReadonlyMap<string, LimitBucket> = new Map([
  ['sample', 'sample'],
  ['schema', 'schema'],
  ['candidates', 'authoring'],
  ['suggest', 'authoring'],
  ['validate', 'authoring'],
  ['publish', 'authoring'],
  ['objects', 'authoring'],
  ['mcp', 'catalog'],
]);

/** `identified`: unauthenticated callers get the authentication error instead. */
export type RefusalAudience = 'anyone' | 'identified';

/**
 * Refuses and records an unknown path or a malformed request. Returns the error for the caller. An invalid token is
 * always reported, never treated as absent.
 */
export async function refuseCall(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  reason: QueryError,
  who: RefusalAudience,
): Promise<QueryError> {
  const { credentials } = call;
  const anonymous =
    credentials.kind === 'bearer' && credentials.token === null && credentials.certificate === undefined;
  if (anonymous && who === 'anyone') return refuseUnauthenticated(parts, call, action, reason);
  const decide = (): never => {
    throw reason;
  };
  const bucket = BUCKETS.get(action) ?? 'query';
  try {
    return await respond<never, never>(parts, call, { action, bucket, decide, answer: decide });
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}
