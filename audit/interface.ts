import type { WriteAt } from './disk.js';
import type { AuditDamaged, AuditUnavailable, UnavailableReason } from './errors.js';
import type { RecordForm } from './form.js';
import type { AppendDone } from './group.js';
import type { AuditEntry, CommonEntry } from './record.js';
import type { Retention } from './retention.js';
import type { LogStore } from './store.js';

export interface AuditLogOptions {
  /** Directory of the log; created with mode 0700 if absent. */
  readonly dir: string;
  /** Tenant named in the log's own events. */
  readonly tenant?: string;
  /** Id of the writer, `[\w.-]{1,64}`; default: made at random at the first start, then kept. */
  readonly writer?: string;
  /** Size at which a new segment starts, bytes; default 32 MiB. */
  readonly segmentBytes?: number;
  /** Longest wait for the disk, ms, before the log counts as failed; default 5,000. */
  readonly deadlineMs?: number;
  /** A checkpoint that stays is signed after this many records; default 10,000. */
  readonly checkpointRecords?: number;
  /** … and after this long if records were added, ms; default 60,000. */
  readonly checkpointMs?: number;
  /** Between them the newest checkpoint is signed anew so often while records are added, ms; default 1,000. */
  readonly renewMs?: number;
  /** Private key that signs checkpoints, PKCS #8 PEM; default `checkpoint.key` in `dir`. */
  readonly signingKeyFile?: string;
  /**
   * Behaviour after a failure of the disk. `reopen` (default): the log tries by itself to go on in a new segment, with a
   * record of the gap. `stay`: it takes nothing more; for who ends the process.
   */
  readonly afterFailure?: 'reopen' | 'stay';
  /** First wait before it tries to reopen, ms; the next ones grow to `REOPEN_MOST_MS`. Default 250. */
  readonly reopenMs?: number;
  /**
   * Opens although the place of the records does not answer, as a log that has failed and goes on by itself; without it,
   * and with `stay`, that is thrown. Default: false.
   */
  readonly waits?: boolean;
  /** For how long records are kept; default: for ever. */
  readonly retention?: Retention;
  readonly observer?: AuditObserver;
  /** Storage of the records, given the size of a segment; default: files in `dir`, which has the keys in any case. */
  readonly store?: (segmentBytes: number) => LogStore;
  /** Stands in for `fs.write`; for fault injection. */
  readonly write?: WriteAt;
}

/** Receives failures as they happen. Must not throw. */
export interface AuditObserver {
  /** The log takes nothing any more. */
  failed(failure: AuditUnavailable): void;
  /** It does again. */
  reopened(gap: AuditGap): void;
  /** The disk holds something else than was written: it is left as it is, and the log stays failed. */
  lost(reason: AuditDamaged): void;
  /** Expired segments could not be deleted and stay: AuditDamaged if they are not what was signed. */
  kept?(reason: Error): void;
  /** A checkpoint is durable. */
  signed?(note: string): void;
  /** The log is closed, in order or not. */
  closed?(): Promise<void>;
}

/** A time in which the log took nothing, as its record `audit.gap` states it. */
export interface AuditGap {
  /** RFC 3339. */
  readonly since: string;
  readonly until: string;
  readonly reason: UnavailableReason;
  /** Error text of the system. */
  readonly cause: string;
  /** Decisions and events that were refused. */
  readonly refused: number;
  /** Outcomes that waited for the disk, and stand after the gap. */
  readonly outcomesKept: number;
  /** Outcomes that were too many to wait. */
  readonly outcomesLost: number;
}

export interface AuditStats {
  readonly writer: string;
  readonly epoch: number;
  /** Records appended, durable or not, in the whole log. */
  readonly records: number;
  /** Records known to be on disk. */
  readonly durable: number;
  /** Records that the last signed checkpoint covers. */
  readonly anchored: number;
  /** Group commits since the log was opened. */
  readonly groups: number;
  /** Number of the segment being written. */
  readonly segment: number;
  /** Number of times that the log has failed and recovered since it was opened. */
  readonly gaps: number;
  /** Reason why no record is taken; null while the log works. */
  readonly failure: AuditUnavailable | null;
}

export interface AuditLog {
  /**
   * Resolves with the record's seq once it is durable; rejects with AuditUnavailable. An outcome may wait some
   * milliseconds for a decision to be written with.
   */
  append(entry: AuditEntry): Promise<number>;
  /** Appends without a promise per record: `done` hears once it is durable, or why not. */
  append(entry: AuditEntry, done: AppendDone): void;
  /** Encodes once the fields that many records share. */
  form(common: CommonEntry): RecordForm;
  /**
   * As `append` of the whole entry, for the same bytes at a fraction of the cost: nothing is made for the record but
   * its text. `durationUs` in µs.
   */
  appendForm(
    form: RecordForm,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    done: AppendDone,
  ): void;
  /**
   * Keyed fingerprint of a statement or value, `<segment>.<base64url of HMAC-SHA-256>`. Equal texts give equal
   * fingerprints within one segment's key; the key file `segment-<n>.key` can be destroyed without harm to the chain.
   */
  fingerprint(text: string): string;
  /** The same of the text whose UTF-8 are the bytes [start, end). */
  fingerprintOf(bytes: Uint8Array, start: number, end: number): string;
  /** Resolves once it has taken its first records: at once, but for a log that waits. Never rejects. */
  readonly whenOpen: Promise<void>;
  /** Makes all appended records durable, signs a last checkpoint, frees the directory. Rejects while the log fails. */
  close(): Promise<void>;
  stats(): AuditStats;
}
