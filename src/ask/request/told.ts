import { QueryError, queryError } from 'osl-compiler';
import { AuditUnavailable } from '../../../policy/audit/index.js';
import { stackOf } from '../../base/thrown.js';
import type { RecordingParts } from './parts.js';

/**
 * A fault that its caller hears as it is, in words that are not of the catalogue of errors: those of the protocol, or
 * of an engine that holds no data. The log keeps its code and no word of it, which may quote the statement.
 */
export abstract class ForeignFault extends Error {
  /** For the log: an SQLSTATE of the protocol, or a code of the catalogue. */
  abstract readonly code: string;
}

/** What the caller is told: a fault of its own as it is, anything of ours only as a request id. */
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
