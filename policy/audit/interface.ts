import type { WriteAt } from './disk.js';
import type { AuditUnavailable } from './errors.js';
import type { AppendDone } from './group.js';
import type { AuditEntry } from './record.js';

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
  /** A checkpoint is signed after this many records; default 10,000. */
  readonly checkpointRecords?: number;
  /** … and after this long if records were added, ms; default 60,000. */
  readonly checkpointMs?: number;
  /** Private key that signs checkpoints, PKCS #8 PEM; default `checkpoint.key` in `dir`. */
  readonly signingKeyFile?: string;
  /** Stands in for `fs.write`; for fault injection. */
  readonly write?: WriteAt;
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
  /** Why nothing is taken any more; null while the log works. */
  readonly failure: AuditUnavailable | null;
}

export interface AuditLog {
  /** Resolves with the record's seq once it is durable; rejects with AuditUnavailable. */
  append(entry: AuditEntry): Promise<number>;
  /** The same without a promise per record. */
  append(entry: AuditEntry, done: AppendDone): void;
  /**
   * Keyed fingerprint of a statement or value, `<segment>.<base64url of HMAC-SHA-256>`. Equal texts give equal
   * fingerprints within one segment's key; the key file `segment-<n>.key` can be destroyed without harm to the chain.
   */
  fingerprint(text: string): string;
  /** Makes all appended records durable, signs a last checkpoint, frees the directory. Rejects if the log failed. */
  close(): Promise<void>;
  stats(): AuditStats;
}
