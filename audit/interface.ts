import type { AppendDone } from './commit-group.js';
import type { WriteAt } from './disk.js';
import type { AuditDamaged, AuditUnavailable, UnavailableReason } from './errors.js';
import type { AuditEntry, CommonEntry, RecordTemplate } from './record.js';
import type { Retention } from './retention.js';
import type { LogStore } from './store.js';

export interface AuditLogOptions {
  /** Directory of the log; created with mode 0700 if absent. */
  readonly dir: string;
  /** Tenant named in the log's own events. */
  readonly tenant?: string;
  /** Writer id, `[\w.-]{1,64}`; default: generated at the first start. */
  readonly writer?: string;
  /** Size at which a new segment starts, bytes; default 32 MiB. */
  readonly segmentBytes?: number;
  /** Time without an answer of the disk after which the log fails, ms; default 5,000. */
  readonly deadlineMs?: number;
  /** Records after which a permanent checkpoint is written; default 10,000. */
  readonly checkpointRecords?: number;
  /** Interval of permanent checkpoints while records are added, ms; default 60,000. */
  readonly checkpointMs?: number;
  /** Interval at which the newest checkpoint is replaced while records are added, ms; default 1,000. */
  readonly renewMs?: number;
  /** Private key that signs checkpoints, PKCS #8 PEM; default `checkpoint.key` in `dir`. */
  readonly signingKeyFile?: string;
  /**
   * Behaviour after a disk failure. `reopen` (default): retries in a new segment and records the gap. `stay`: accepts
   * nothing more; the process is expected to end.
   */
  readonly afterFailure?: 'reopen' | 'stay';
  /** Delay before the first attempt to reopen, ms; later delays double up to `REOPEN_MOST_MS`. Default 250. */
  readonly reopenMs?: number;
  /**
   * If the storage does not respond at the start, opens as a failed log that retries, instead of throwing. Default:
   * false.
   */
  readonly waits?: boolean;
  /** Default: records are kept for ever. */
  readonly retention?: Retention;
  readonly observer?: AuditObserver;
  /** Creates the record storage for a segment size; default: files in `dir`. Keys are always in `dir`. */
  readonly store?: (segmentBytes: number) => LogStore;
  /** Replaces `fs.write` for fault injection. */
  readonly write?: WriteAt;
}

/** Callbacks must not throw. */
export interface AuditObserver {
  /** The log accepts no more records. */
  failed(failure: AuditUnavailable): void;
  /** The log accepts records again. */
  reopened(gap: AuditGap): void;
  /** The disk content differs from what was written. The log stays failed and leaves the disk unchanged. */
  lost(reason: AuditDamaged): void;
  /** Expired segments could not be deleted; AuditDamaged if they differ from what was signed. */
  kept?(reason: Error): void;
  /** A checkpoint is durable. */
  signed?(note: string): void;
  /** The log was closed, successfully or not. */
  closed?(): Promise<void>;
}

/** A period in which the log accepted nothing, as recorded by `audit.gap`. */
export interface AuditGap {
  /** RFC 3339. */
  readonly since: string;
  readonly until: string;
  readonly reason: UnavailableReason;
  readonly cause: string;
  /** Number of refused decisions and events. */
  readonly refused: number;
  /** Outcomes that waited and were recorded after the gap. */
  readonly outcomesKept: number;
  /** Outcomes lost because the queue was full. */
  readonly outcomesLost: number;
}

export interface AuditStats {
  readonly writer: string;
  readonly epoch: number;
  /** Records appended, durable or not, in the whole log. */
  readonly records: number;
  /** Records known to be on disk. */
  readonly durable: number;
  /** Records covered by the last checkpoint. */
  readonly anchored: number;
  /** Group commits since the log was opened. */
  readonly groups: number;
  readonly segment: number;
  /** Failures since opening from which the log recovered. */
  readonly gaps: number;
  /** Null while the log works. */
  readonly failure: AuditUnavailable | null;
}

export interface AuditLog {
  /**
   * Resolves with the record's seq once it is durable; rejects with AuditUnavailable. An outcome may be delayed by
   * some milliseconds to share the sync of a decision.
   */
  append(entry: AuditEntry): Promise<number>;
  /** Variant without a promise per record. */
  append(entry: AuditEntry, done: AppendDone): void;
  /** Creates a template for records that share these fields. */
  form(common: CommonEntry): RecordTemplate;
  /** Appends a record of a template: the same bytes as `append` at a fraction of the cost. */
  appendForm(
    form: RecordTemplate,
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
  /** Fingerprint of the text whose UTF-8 bytes are [start, end). */
  fingerprintOf(bytes: Uint8Array, start: number, end: number): string;
  /** Resolves once the first records are durable. Never rejects. */
  readonly whenOpen: Promise<void>;
  /**
   * Makes all appended records durable, writes a last checkpoint, releases the directory. Rejects if the log has
   * failed.
   */
  close(): Promise<void>;
  stats(): AuditStats;
}
