import type { AuditUnavailable } from './errors.js';
import type { RecordForm } from './form.js';
import {
  type Digest,
  digest,
  FRAME_HEAD,
  FRAME_TAIL,
  frameLength,
  HASH_BYTES,
  MAX_GROUP_BYTES,
  MAX_RECORD_BYTES,
  putDigest,
  putFrameHead,
  putFrameTail,
} from './format.js';
import type { AuditEntry, AuditRecord } from './record.js';

/** The writer's end of the chain: h = SHA-256(previous h ‖ leaf hash), one record after another. */
export class Chain {
  /** The next hash's input: the last chain hash, and room for a leaf. */
  readonly #link = Buffer.alloc(2 * HASH_BYTES);
  #last: Digest;

  /** @param last chain hash so far */
  constructor(last: Buffer) {
    this.#last = last.toString('latin1');
    putDigest(this.#link, 0, this.#last);
  }

  /** Chain hash after the last record. */
  get last(): Digest {
    return this.#last;
  }

  add(leaf: Digest): Digest {
    putDigest(this.#link, HASH_BYTES, leaf);
    this.#last = digest(this.#link);
    putDigest(this.#link, 0, this.#last);
    return this.#last;
  }
}

/** Called once per record: with its seq when it is durable, or with the reason why it never will be. Must not throw. */
export type AppendDone = (error: AuditUnavailable | null, seq: number) => void;

/** Keeps an outcome that a failure of the disk refused, until the log goes on. */
export type KeepOutcome = (outcome: AuditEntry, done: AppendDone) => void;

const FIRST_CAPACITY = 256 * 1024;

/** Reason why a group does not take a record. */
export type AppendRefusal = 'too_long' | 'overloaded';

/** The records that share one sync, encoded and chained as they arrive. Reused for group after group. */
export class CommitGroup {
  buffer: Buffer = Buffer.alloc(FIRST_CAPACITY);
  /** Bytes of `buffer` in use. */
  used = 0;
  firstSeq = 0;
  /** Chain hash before the first record. */
  chainBefore: Digest = '';
  /** True if somebody's answer waits for one of the records. */
  awaited = false;
  readonly leaves: Digest[] = [];
  readonly waiting: AppendDone[] = [];
  readonly #chain: Chain;
  /** Of each record what it was appended as, where it is an outcome that a failure does not refuse; else null. */
  readonly #outcomes: (AuditEntry | RecordForm | null)[] = [];

  /** @param chain goes on with each record that is added */
  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /**
   * Adds a record as a frame.
   *
   * @param record canonical JSON
   * @param outcome what it was appended as, where a failure is not to refuse it
   * @returns why it was not added, else null
   */
  add(record: string, seq: number, done: AppendDone, outcome: AuditEntry | null): AppendRefusal | null {
    // A UTF-16 unit takes at most three bytes in UTF-8.
    if (!this.#reserve(record.length * 3 + FRAME_HEAD + FRAME_TAIL)) return 'overloaded';
    const length = this.buffer.write(record, this.used + FRAME_HEAD);
    if (length > MAX_RECORD_BYTES) return 'too_long';
    this.#frame(length, seq, done, outcome);
    return null;
  }

  /** As `add`, of the record's UTF-8 with a character for each byte. */
  addBytes(record: string, seq: number, done: AppendDone, outcome: RecordForm | null): AppendRefusal | null {
    const { length } = record;
    if (!this.#reserve(length + FRAME_HEAD + FRAME_TAIL)) return 'overloaded';
    this.buffer.write(record, this.used + FRAME_HEAD, length, 'latin1');
    this.#frame(length, seq, done, outcome);
    return null;
  }

  /** Tells everybody that no record of the group will be durable; outcomes go to `keep`, if anybody keeps them. */
  refuse(failure: AuditUnavailable, keep: KeepOutcome | null): void {
    let at = 0;
    for (const [i, done] of this.waiting.entries()) {
      const body = at + FRAME_HEAD;
      at = body + frameLength(this.buffer, at) + FRAME_TAIL;
      const outcome = this.#outcomes[i] ?? null;
      if (keep === null || outcome === null) process.nextTick(done, failure, -1);
      else keep('entry' in outcome ? this.#entryOf(outcome, body, at - FRAME_TAIL) : outcome, done);
    }
    // What the kernel may still read must not change, so the buffer is left behind, not reused.
    this.waiting.length = 0;
  }

  clear(): void {
    this.used = 0;
    this.awaited = false;
    this.leaves.length = 0;
    this.waiting.length = 0;
    this.#outcomes.length = 0;
  }

  /** The entry that a record of `form` stands for: what changes is in its bytes. */
  #entryOf(form: RecordForm, start: number, end: number): AuditEntry {
    const record = JSON.parse(this.buffer.toString('utf8', start, end)) as AuditRecord; // encoded by the form
    return form.entry(record.request_id, record.statement_hmac, record.rows, record.duration_us);
  }

  /** Makes a frame of the `length` bytes that stand where its record belongs. */
  #frame(length: number, seq: number, done: AppendDone, outcome: AuditEntry | RecordForm | null): void {
    const at = this.used;
    const body = at + FRAME_HEAD;
    if (at === 0) {
      this.firstSeq = seq;
      this.chainBefore = this.#chain.last;
    }
    putFrameHead(this.buffer, at, at, length);
    const leaf = digest(this.buffer.subarray(body - 1, body + length));
    putFrameTail(this.buffer, at, length, this.#chain.add(leaf));
    this.used = body + length + FRAME_TAIL;
    this.leaves.push(leaf);
    this.waiting.push(done);
    this.#outcomes.push(outcome);
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
