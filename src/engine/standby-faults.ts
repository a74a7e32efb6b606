import type { UpstreamError } from './upstream-report.js';

/** serialization_failure: on a standby, the statement stood in the way of the primary's log. */
const RECOVERY_CONFLICT = '40001';
/**
 * SQLSTATEs of a standby that the primary would not report: the statement stood in the way of replay, or waited for it
 * in a circle (deadlock_detected), or reads what a standby does not have, such as an unlogged table
 * (feature_not_supported).
 */
const OF_STANDBY: ReadonlySet<string> = new Set([RECOVERY_CONFLICT, '40P01', '0A000']);
/** admin_shutdown: the server is shut down, or somebody has ended the session. */
const ADMIN_SHUTDOWN = '57P01';

/** True for an error of a standby after which the primary may answer. */
export function isOfStandby({ sqlstate }: UpstreamError): boolean {
  return OF_STANDBY.has(sqlstate);
}

export function isReplayConflict({ sqlstate }: UpstreamError): boolean {
  return sqlstate === RECOVERY_CONFLICT;
}

export function isShutdown(error: UpstreamError | null): boolean {
  return error?.sqlstate === ADMIN_SHUTDOWN;
}
