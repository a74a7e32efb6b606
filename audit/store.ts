import type { SegmentHeader } from './format.js';
import type { Frontier } from './frontier.js';
import type { RecoveredLog, RecoverOptions } from './recover.js';
import type { RetirementPlan } from './retention.js';
import type { Signer } from './signer.js';
import type { LogSource } from './source.js';

/** Storage of a log, as its writer uses it. */
export interface LogStore {
  /** Stored records, for readers. */
  readonly source: LogSource;
  /**
   * Reads what is there, checks it, and makes it ready to be written on.
   *
   * @throws AuditDamaged, AuditLocked; anything else is that the place does not answer
   */
  recover(signer: Signer, options?: RecoverOptions): Promise<RecoveredLog>;
  /** @param recovered where the writer goes on */
  segments(recovered: RecoveredLog): SegmentStore;
  notes(signed: number): Promise<NoteStore>;
  /** Readings of the log by others. */
  readonly readings: ReadingQueue;
  /** A segment is complete, and another begun; also once at the start. */
  rotated(): void;
  /** Keeps what is signed of segments that are kept no more; durable when it resolves. @param note with its empty line */
  retain(note: Buffer, old: RetirementPlan): Promise<void>;
  /** Lets them go, after that. @param archive where they go; null: nowhere */
  release(old: RetirementPlan, archive: string | null): Promise<void>;
  /** Lets go of it; the writer is done, or has given up. */
  close(): Promise<void>;
}

/** The segment being written. */
export interface SegmentStore {
  readonly number: number;
  /** True if a group of `length` bytes belongs into the current segment. */
  fits(length: number): boolean;
  /** Makes the next segment the current one; the caller has nothing in flight. @param before the tree of what stands before */
  begin(header: Omit<SegmentHeader, 'segment'>, before: Frontier): Promise<void>;
  /** Appends the frames of one group; durable when `done` is called without an error. */
  append(group: Buffer, length: number, done: (error: Error | null) => void): void;
  fingerprint(text: string): string;
  fingerprintOf(bytes: Uint8Array, start: number, end: number): string;
  /** Closes in order. */
  finish(): Promise<void>;
  /** Closes without touching anything: what a failed log left is for recovery to judge. */
  abandon(): Promise<void>;
}

/** Storage of signed notes; each is durable when its promise resolves. */
export interface NoteStore {
  /** A checkpoint that stays. */
  append(note: Buffer, size: number): Promise<void>;
  /** The newest one, in the place of the one before. */
  replace(note: Buffer, size: number): Promise<void>;
  close(): Promise<void>;
}

/** Readings that the log has yet to record. */
export interface ReadingQueue {
  /** The oldest ones, or none. */
  waiting(): Promise<readonly { readonly id: string; readonly bytes: Buffer }[]>;
  recorded(id: string): Promise<void>;
}
