import type { AuditUnavailable } from './errors.js';
import {
  chainHash,
  FRAME_HEAD,
  FRAME_TAIL,
  GENESIS,
  leafHash,
  MAX_GROUP_BYTES,
  putFrameHead,
  putFrameTail,
} from './format.js';
import { MAX_RECORD_BYTES } from './record.js';

/** Called once per record: with its seq when it is durable, or with the reason why it never will be. Must not throw. */
export type AppendDone = (error: AuditUnavailable | null, seq: number) => void;

const FIRST_CAPACITY = 256 * 1024;

/** The records that share one sync, encoded and chained as they arrive. Reused for group after group. */
export class Group {
  buffer: Buffer = Buffer.alloc(FIRST_CAPACITY);
  /** Bytes of `buffer` in use. */
  used = 0;
  firstSeq = 0;
  /** Chain hash before the first record. */
  chainBefore: Buffer = GENESIS;
  readonly leaves: Buffer[] = [];
  readonly waiting: AppendDone[] = [];

  /**
   * Adds a record as a frame.
   *
   * @param record canonical JSON
   * @param previous chain hash before the record
   * @returns chain hash after it, or why it was not added
   */
  add(record: string, previous: Buffer, seq: number, done: AppendDone): Buffer | 'too_long' | 'overloaded' {
    // A UTF-16 unit takes at most three bytes in UTF-8.
    if (!this.#reserve(record.length * 3 + FRAME_HEAD + FRAME_TAIL)) return 'overloaded';
    const at = this.used;
    const body = at + FRAME_HEAD;
    const length = this.buffer.write(record, body);
    if (length > MAX_RECORD_BYTES) return 'too_long';
    putFrameHead(this.buffer, at, at, length);
    const leaf = leafHash(this.buffer.subarray(body - 1, body + length));
    const chain = chainHash(previous, leaf);
    putFrameTail(this.buffer, at, length, chain);
    if (at === 0) {
      this.firstSeq = seq;
      this.chainBefore = previous;
    }
    this.used = body + length + FRAME_TAIL;
    this.leaves.push(leaf);
    this.waiting.push(done);
    return chain;
  }

  clear(): void {
    this.used = 0;
    this.leaves.length = 0;
    this.waiting.length = 0;
  }

  #reserve(bytes: number): boolean {
    const needed = this.used + bytes;
    if (needed <= this.buffer.length) return true;
    if (needed > MAX_GROUP_BYTES) return false;
    const larger = Buffer.alloc(Math.min(MAX_GROUP_BYTES, Math.max(needed, this.buffer.length * 2)));
    this.buffer.copy(larger, 0, 0, this.used);
    this.buffer = larger;
    return true;
  }
}
