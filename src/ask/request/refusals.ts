import { QueryError, queryError } from 'osl-compiler';
import type { RequestCall } from './call.js';
import type { Caller } from './caller.js';
import { Ledger } from './ledger.js';
import type { RequestParts } from './parts.js';
import { type PublicError, publicError } from './public-error.js';
import type { RequestTarget } from './request-target.js';
import { SealedValue } from './sealed.js';

/** A request whose decision has not been made yet. */
export interface OpenRequest {
  readonly parts: RequestParts;
  readonly call: RequestCall;
  readonly ledger: Ledger;
}

export function begin(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  target: RequestTarget | null = null,
): OpenRequest {
  return {
    parts,
    call,
    ledger: new Ledger(SealedValue.open(parts.controls).recording, call, action, target),
  };
}

/** Records a refusal and returns the error for the caller. The request is refused even if recording fails. */
export async function refuse<T extends PublicError>(request: OpenRequest, error: T): Promise<T | QueryError> {
  try {
    return await recordRefusal(request, error);
  } catch (unrecorded) {
    return publicError(request.parts, request.call.requestId, unrecorded);
  }
}

/**
 * Records a refusal. Refusals of unauthenticated callers are limited per address, so that they cannot flood the log.
 */
async function recordRefusal<T extends PublicError>(
  { parts, call, ledger }: OpenRequest,
  error: T,
): Promise<T | QueryError> {
  const { credentials } = call;
  const isAuthenticated =
    ledger.identified && !(error instanceof QueryError && error.entry === 'invalidToken');
  if (credentials.kind === 'bearer' && !isAuthenticated) {
    const { address } = credentials;
    const result = await SealedValue.open(parts.controls).limiter.takeAddress(address);
    if (!result.ok) {
      const limited = queryError('addressLimited', { retryAfterSeconds: result.retryAfterSeconds });
      if (parts.refusals.isFirst(call, address)) await ledger.refuse(limited);
      return limited;
    }
  }
  await ledger.refuse(error);
  return error;
}

/** Returns a check that refuses callers without an admin role. All subjects of a chain need one. */
export function adminsOnly(refusal: 'authorsOnly' | 'operatorsOnly' | 'upstreamForAdmins') {
  return ({ access }: Caller): void => {
    if (access.adminRoles.size === 0) throw queryError(refusal, {});
  };
}

/** Refuses and records a call without authenticating it, and returns the error for the caller. */
export function refuseUnauthenticated(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  reason: QueryError,
): Promise<QueryError> {
  return refuse(begin(parts, call, action), reason);
}

/** Records a failure that happened before a session existed. The number of these records is limited per address. */
export async function recordBrokenConnection(
  parts: RequestParts,
  call: RequestCall,
  action: string,
  fault: PublicError,
): Promise<void> {
  if (call.credentials.kind !== 'bearer') return;
  const { address } = call.credentials;
  const result = await SealedValue.open(parts.controls).limiter.takeAddress(address);
  if (!result.ok && !parts.refusals.isFirst(call, address)) return;
  try {
    await begin(parts, call, action).ledger.refuse(fault);
  } catch (error) {
    publicError(parts, call.requestId, error); // only to log the error: nobody receives it
  }
}
