/** Reason why the log does not take a record. */
export type UnavailableReason =
  | 'closed' // close() was called
  | 'disk' // a write or sync failed; it is never tried again
  | 'full' // the disk has no room (ENOSPC, EDQUOT)
  | 'deadline' // the disk did not answer in time
  | 'overloaded' // too much waits for the disk; this record alone is refused
  | 'too_long'; // the record cannot fit an entry; this record alone is refused

/**
 * A record was not made durable, so whatever it was to allow must be refused; callers answer 503 or SQLSTATE 57P03.
 * After `disk`, `full` or `deadline` the log takes nothing until it has opened itself again.
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

/** Any failure of the disk as AuditUnavailable. */
export function unavailable(error: unknown): AuditUnavailable {
  if (error instanceof AuditUnavailable) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT' || code === POSTGRES_DISK_FULL) {
    return new AuditUnavailable('full', 'the disk of the audit log is full', error);
  }
  return new AuditUnavailable('disk', 'the audit log could not be written', error);
}

/** The stored log is not what its writer left; the process must not go on writing to it. */
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
