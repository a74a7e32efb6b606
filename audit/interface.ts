import type { AuditSync } from './checkpoint.js';
import type { AppendDone } from './commit-group.js';
import type { WriteAt } from './disk.js';
import type { AuditDamaged, AuditUnavailable, UnavailableReason } from './errors.js';
import type { AuditEntry, CommonEntry, RecordedStandby, RecordTemplate } from './record.js';
import type { Retention } from './retention.js';
import type { LogStore } from './store.js';

export interface AuditLogOptions {
  /** Directory of the log; created with mode 0700 if absent. */
  readonly dir: string;
  /** Tenant recorded in the log's own events. */
  readonly tenant?: string;
  /** Writer id, `[\w.-]{1,64}`; by default it is generated on the first start. */
  readonly writer?: string;
  /** Size at which a new segment is started, bytes; default 32 MiB. */
  readonly segmentBytes?: number;
  /** Time without a response from the disk after which the log fails, ms; default 5,000. */
  readonly deadlineMs?: number;
  /** Number of records after which a permanent checkpoint is written; default 10,000. */
  readonly checkpointRecords?: number;
  /** Interval of permanent checkpoints while records are added, ms; default 60,000. */
  readonly checkpointMs?: number;
  /** Interval at which the newest checkpoint is replaced while records are added, ms; default 1,000. */
  readonly renewMs?: number;
  /** Private key that signs checkpoints, PKCS #8 PEM; default `checkpoint.key` in `dir`. */
  readonly signingKeyFile?: string;
  /**
   * Behaviour after a disk failure. `reopen` (default): keep trying to continue in a new segment, and record the gap.
   * `stay`: accept nothing more; the process is expected to exit.
   */
  readonly afterFailure?: 'reopen' | 'stay';
  /**
   * Point at which a record counts as recorded. `disk` (default): once it is synced. `kernel`: once it is written; it
   * is synced within 50 ms, so it survives the death of the process, but not a power failure.
   */
  readonly sync?: AuditSync;
  /** Delay before the first attempt to reopen, ms, doubled for each later one up to `REOPEN_MOST_MS`. Default 250. */
  readonly reopenMs?: number;
  /**
   * True to open the log in a failed state and keep retrying if the storage does not respond at startup, instead of
   * throwing. Default: false.
   */
  readonly waits?: boolean;
  /** Retention of records; default: they are kept forever. */
  readonly retention?: Retention;
  readonly observer?: AuditObserver;
  /** Creates the record storage for a segment size; default: files in `dir`. Keys are always stored in `dir`. */
  readonly store?: (segmentBytes: number) => LogStore;
  /** Replaces `fs.write`, for fault injection in tests. */
  readonly write?: WriteAt;
}

/** Callbacks must not throw. */
export interface AuditObserver {
  /** Called when the log stops accepting records. */
  failed(failure: AuditUnavailable): void;
  /** Called when the log accepts records again. */
  reopened(gap: AuditGap): void;
  /**
   * Called if the disk content differs from what was written. The log then stays failed and leaves the disk unchanged.
   */
  lost(reason: AuditDamaged): void;
  /** Called if expired segments could not be deleted; `reason` is AuditDamaged if they differ from what was signed. */
  kept?(reason: Error): void;
  /** Called once a checkpoint is durable. */
  signed?(note: string): void;
  /** Called after the log was closed, successfully or not. `close` waits for the returned promise. */
  closed?(): Promise<void>;
}

/** A period in which the log accepted no records, as reported by the `audit.gap` event. */
export interface AuditGap {
  /** Start of the period, RFC 3339. */
  readonly since: string;
  readonly until: string;
  readonly reason: UnavailableReason;
  readonly cause: string;
  /** Number of refused decisions and events. */
  readonly refused: number;
  /** Number of outcomes that waited and were recorded after the gap. */
  readonly outcomesKept: number;
  /** Number of outcomes lost because the queue was full. */
  readonly outcomesLost: number;
}

export interface AuditStats {
  readonly writer: string;
  readonly epoch: number;
  /** Number of records in the whole log, durable or not. */
  readonly records: number;
  /** Number of records known to be on disk. */
  readonly durable: number;
  /** Number of records covered by the newest checkpoint. */
  readonly anchored: number;
  /** Point at which a record counts as recorded. */
  readonly sync: AuditSync;
  /** Number of group commits since the log was opened. */
  readonly groups: number;
  readonly segment: number;
  /** Number of failures since opening after which the log worked again. */
  readonly gaps: number;
  /** Current failure; null while the log works. */
  readonly failure: AuditUnavailable | null;
}

export interface AuditLog {
  /**
   * Resolves with the record's seq once it is durable (with `sync: 'kernel'`, once it is written); rejects with
   * AuditUnavailable. An outcome may be delayed by a few milliseconds so that it shares the sync of a decision.
   */
  append(entry: AuditEntry): Promise<number>;
  /** Like `append` above, but calls `done` instead of creating a promise. */
  append(entry: AuditEntry, done: AppendDone): void;
  /** Creates a template for records that share these fields. */
  form(common: CommonEntry): RecordTemplate;
  /** Appends a record based on a template: the same bytes as `append` at a fraction of the cost. */
  appendForm(
    form: RecordTemplate,
    requestId: string,
    statementHmac: string | null,
    rows: number | null,
    durationUs: number | null,
    done: AppendDone,
    standby?: RecordedStandby,
  ): void;
  /**
   * Appends an outcome, and resolves with the proof that it is in the log: a C2SP tlog-proof under a tree that is
   * signed once the record is on disk. Rejects with AuditUnavailable as soon as the log fails; the outcome itself is
   * kept as with `append`.
   *
   * @param entry must contain `ts`, because the proof encodes the record a second time
   */
  appendProven(entry: AuditEntry): Promise<string>;
  /**
   * Keyed fingerprint of a statement or value, `<segment>.<base64url of HMAC-SHA-256>`. Within a segment, which has
   * one key, equal texts have equal fingerprints. Destroying the key file `segment-<n>.key` does not affect the chain.
   */
  fingerprint(text: string): string;
  /** Fingerprint of text given as the UTF-8 bytes in [start, end). */
  fingerprintOf(bytes: Uint8Array, start: number, end: number): string;
  /** Resolves once the first records are durable. Never rejects. */
  readonly whenOpen: Promise<void>;
  /**
   * Makes all appended records durable, writes a final checkpoint, and releases the directory. Rejects if the log has
   * failed.
   */
  close(): Promise<void>;
  stats(): AuditStats;
}
