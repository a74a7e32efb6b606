export type UnavailableReason =
  | 'closed' // close() was called
  | 'disk' // a write or sync failed; failed writes are never retried
  | 'full' // no space left (ENOSPC, EDQUOT)
  | 'deadline' // the disk did not answer in time
  | 'overloaded' // the queue of unwritten records is full; only this record is refused
  | 'too_long'; // the record exceeds the size limit; only this record is refused

/**
 * A record could not be made durable, so the request that it belongs to must be refused; callers respond with 503 or
 * SQLSTATE 57P03. After `disk`, `full` or `deadline`, the log accepts nothing until it has reopened itself.
 */
export class AuditUnavailable extends Error {
  override readonly name = 'AuditUnavailable';
  readonly reason: UnavailableReason;

  constructor(reason: UnavailableReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.reason = reason;
  }
}

const POSTGRES_DISK_FULL = '53100';

/** Converts any disk error to AuditUnavailable. */
export function toAuditUnavailable(error: unknown): AuditUnavailable {
  if (error instanceof AuditUnavailable) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === POSTGRES_DISK_FULL) {
    return new AuditUnavailable('full', 'the disk of the audit log is full', error);
  }
  return new AuditUnavailable('disk', 'the audit log could not be written', error);
}

/** The stored log differs from what was written to it; the process must not write to that log. */
export class AuditDamaged extends Error {
  override readonly name = 'AuditDamaged';
  readonly file: string;
  /** Byte offset in `file`. */
  readonly offset: number;
  readonly seq: number;

  constructor(file: string, offset: number, seq: number, message: string) {
    super(`audit log is damaged at ${file}:${offset} (seq ${seq}): ${message}`);
    this.file = file;
    this.offset = offset;
    this.seq = seq;
  }
}

/** Another process has the directory open for writing. */
export class AuditLocked extends Error {
  override readonly name = 'AuditLocked';
}
