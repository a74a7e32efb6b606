import type { SegmentHeader } from './format.js';
import type { Frontier, LogBase } from './frontier.js';
import type { RecoveredLog, RecoverOptions } from './recover.js';
import type { Signer } from './signer.js';
import type { LogSource } from './source.js';

/** Segments to delete: the oldest ones, all complete. */
export interface RetirementPlan {
  readonly segments: readonly number[];
  /** Position after the last of these segments. A later signed checkpoint covers it. */
  readonly base: LogBase;
  /** Latest time of the records in these segments. */
  readonly until: string;
}

/** Storage of a log: segment files in a directory, or tables in Postgres. */
export interface LogStore {
  readonly source: LogSource;
  /**
   * Reads and verifies the stored log and prepares it for writing.
   *
   * @throws AuditDamaged, AuditLocked; any other error means that the storage does not respond
   */
  recover(signer: Signer, options?: RecoverOptions): Promise<RecoveredLog>;
  /** Returns the storage for further segments. @param recovered position at which writing continues */
  segments(recovered: RecoveredLog): SegmentStore;
  notes(signed: number): Promise<NoteStore>;
  /** Announced reads of the log that have not been recorded yet. */
  readonly readings: ReadingQueue;
  /** Called at startup and whenever a new segment has been started. */
  rotated(): void;
  /** Stores the retention note; resolves once it is durable. @param note ends in an empty line */
  retain(note: Buffer, old: RetirementPlan): Promise<void>;
  /** Deletes expired segments; called after `retain`. @param archive directory to copy them to first, or null */
  release(old: RetirementPlan, archive: string | null): Promise<void>;
  /** Releases the storage after the writer has finished or failed. */
  close(): Promise<void>;
}

export interface SegmentStore {
  readonly number: number;
  /** True if a group of `length` bytes can be added to the current segment. */
  fits(length: number): boolean;
  /** Begins the next segment. No write may be pending. @param before Merkle tree of all previous records */
  begin(header: Omit<SegmentHeader, 'segment'>, before: Frontier): Promise<void>;
  /**
   * Appends the frames of one group. When `done` is called without an error, they are durable; with `sync: 'kernel'`,
   * they only survive the death of the process.
   */
  append(group: Buffer, length: number, done: (error: Error | null) => void): void;
  /** Makes all appended groups durable. */
  sync(): Promise<void>;
  fingerprint(text: string): string;
  fingerprintOf(bytes: Uint8Array, start: number, end: number): string;
  /** Closes the segment after the last record. */
  finish(): Promise<void>;
  /** Closes the files without changing anything; recovery decides what to keep. */
  abandon(): Promise<void>;
}

/** Storage for signed notes; each note is durable once its promise resolves. */
export interface NoteStore {
  /** Adds a permanent checkpoint. */
  append(note: Buffer, size: number): Promise<void>;
  /** Replaces the newest checkpoint. */
  replace(note: Buffer, size: number): Promise<void>;
  close(): Promise<void>;
}

/** Queue of announced reads that have not been recorded yet. */
export interface ReadingQueue {
  /** Oldest entries, at most 100. */
  waiting(): Promise<readonly { readonly id: string; readonly bytes: Buffer }[]>;
  recorded(id: string): Promise<void>;
}
