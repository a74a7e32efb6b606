import { QueryError, queryError } from 'osl-compiler';
import { type AuditDecision, AuditUnavailable } from '../../../audit/index.js';
import { stackOf } from '../../base/thrown.js';
import type { RecordingParts } from './parts.js';

/**
 * An error whose text is not from the error catalogue but is sent to the caller unchanged: from the protocol, or from
 * the catalog engine, which holds no data. The log has its code but not its text, which may quote the statement.
 */
export abstract class ForeignFault extends Error {
  /** SQLSTATE or catalogue code, for the log. */
  abstract readonly code: string;
  /** SQLSTATE sent to the client; null to send `code`. */
  readonly sentSqlstate: string | null = null;
}

/** An error that is safe to show to the caller. */
export type PublicError = QueryError | ForeignFault;

/** The decision and code in the audit records of a failed request. */
export interface FailureVerdict {
  /** `deny`: the caller is not authenticated, or lacks or has lost a right. */
  readonly decision: Exclude<AuditDecision, 'allow'>;
  readonly code: string;
}

/** Returns decision and code of a failure. INVARIANT: all failure records use it, so log and caller get one code. */
export function verdictOf(error: PublicError): FailureVerdict {
  return { decision: isDenial(error) ? 'deny' : 'error', code: error.code };
}

/** True if the error means missing credentials or rights. */
export function isDenial(error: PublicError): boolean {
  if (error instanceof QueryError)
    return error.http === 401 || error.http === 403 || error.entry === 'rightsChanged';
  const sqlstate = error.sentSqlstate ?? error.code;
  return sqlstate === INSUFFICIENT_PRIVILEGE || sqlstate.startsWith(INVALID_AUTHORIZATION);
}

const INSUFFICIENT_PRIVILEGE = '42501';
/** SQLSTATE class for wrong passwords, expired tokens and the like. */
const INVALID_AUTHORIZATION = '28';

/** Converts an error for the caller: QueryError is unchanged, AuditUnavailable is E5030, others are logged as E5000. */
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
