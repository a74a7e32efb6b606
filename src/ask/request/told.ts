import { QueryError, queryError } from 'osl-compiler';
import { type AuditDecision, AuditUnavailable } from '../../../audit/index.js';
import { stackOf } from '../../base/thrown.js';
import type { RecordingParts } from './parts.js';

/**
 * An error that its caller gets unchanged, with a text from outside the catalogue of errors: from the protocol, or from
 * an engine that holds no data. The log gets its code but not its text, which may quote the statement.
 */
export abstract class ForeignFault extends Error {
  /** For the log: an SQLSTATE of the protocol, or a code of the catalogue. */
  abstract readonly code: string;
  /** SQLSTATE that the client gets, if it is not `code`; otherwise null. */
  readonly heard: string | null = null;
}

/** Decision and code of a failed request, as its audit records have them. */
export interface Verdict {
  /** `deny`: the caller lacks a right, or has lost one; `error`: anything else. */
  readonly decision: Exclude<AuditDecision, 'allow'>;
  readonly code: string;
}

/** INVARIANT: every record of a failure takes its decision and code from here, so that log and caller have the same. */
export function verdictOf(error: QueryError | ForeignFault): Verdict {
  return { decision: isDenial(error) ? 'deny' : 'error', code: error.code };
}

/** True if `error` is about a missing right: credentials or access. */
export function isDenial(error: QueryError | ForeignFault): boolean {
  if (error instanceof QueryError)
    return error.http === 401 || error.http === 403 || error.entry === 'rightsChanged';
  const sqlstate = error.heard ?? error.code;
  return sqlstate === INSUFFICIENT_PRIVILEGE || sqlstate.startsWith(INVALID_AUTHORIZATION);
}

const INSUFFICIENT_PRIVILEGE = '42501';
/** A class of SQLSTATEs: wrong password, ended token, … */
const INVALID_AUTHORIZATION = '28';

/** Error for the caller: a QueryError unchanged; anything else is logged and reduced to a request id. */
export function publicError(
  parts: Pick<RecordingParts, 'log'>,
  requestId: string,
  error: unknown,
): QueryError {
  if (error instanceof QueryError) return error;
  if (error instanceof AuditUnavailable) return queryError('auditUnavailable', {});
  parts.log.error('internal error', {
    request_id: requestId,
    error: stackOf(error),
  });
  return queryError('internal', {});
}
