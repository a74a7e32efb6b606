import type { AuditUnavailable } from './errors.js';
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
import type { AuditEntry, AuditRecord, RecordTemplate } from './record.js';

/** Hash chain of the writer: h = SHA-256(previous h ‖ leaf hash) for each record. */
export class Chain {
  /** Input of the next hash: the previous chain hash, followed by space for a leaf hash. */
  readonly #link = Buffer.alloc(2 * HASH_BYTES);
  #last: Digest;

  constructor(last: Buffer) {
    this.#last = last.toString('latin1');
    putDigest(this.#link, 0, this.#last);
  }

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

/** Called once per record: with its seq when acknowledged (see `AuditSync`), or the error. Must not throw. */
export type AppendDone = (error: AuditUnavailable | null, seq: number) => void;

/** Queues an outcome rejected by a disk failure, to be recorded once the log works again. */
export type KeepOutcome = (outcome: AuditEntry, done: AppendDone) => void;

const FIRST_CAPACITY = 256 * 1024;

export type AppendRefusal = 'too_long' | 'overloaded';

/** Records stored by one write, encoded and chained as they arrive. The object is reused for later groups. */
export class CommitGroup {
  buffer: Buffer = Buffer.alloc(FIRST_CAPACITY);
  /** Number of bytes used in `buffer`. */
  used = 0;
  firstSeq = 0;
  /** Chain hash before the first record. */
  chainBefore: Digest = '';
  /** True if a response is waiting for one of the records to be acknowledged. */
  awaited = false;
  readonly leaves: Digest[] = [];
  readonly waiting: AppendDone[] = [];
  readonly #chain: Chain;
  /** For each record: its entry or template if it is an outcome that must survive a disk failure, otherwise null. */
  readonly #outcomes: (AuditEntry | RecordTemplate | null)[] = [];

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /**
   * Adds a record as a frame.
   *
   * @param record canonical JSON
   * @param outcome the entry if it must survive a disk failure, otherwise null
   * @returns the reason if the record was refused, otherwise null
   */
  add(record: string, seq: number, done: AppendDone, outcome: AuditEntry | null): AppendRefusal | null {
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    if (!this.#reserve(record.length * 3 + FRAME_HEAD + FRAME_TAIL)) return 'overloaded';
    const length = this.buffer.write(record, this.used + FRAME_HEAD);
    if (length > MAX_RECORD_BYTES) return 'too_long';
    this.#frame(length, seq, done, outcome);
    return null;
  }

  /** Like `add`, for a record from a template. @param record UTF-8 bytes, one per latin1 character */
  addBytes(
    record: string,
    seq: number,
    done: AppendDone,
    outcome: RecordTemplate | null,
  ): AppendRefusal | null {
    const { length } = record;
    if (!this.#reserve(length + FRAME_HEAD + FRAME_TAIL)) return 'overloaded';
    this.buffer.write(record, this.used + FRAME_HEAD, length, 'latin1');
    this.#frame(length, seq, done, outcome);
    return null;
  }

  /** Fails all records of the group, except that outcomes are passed to `keep` if it is not null. */
  refuse(failure: AuditUnavailable, keep: KeepOutcome | null): void {
    let at = 0;
    for (const [i, done] of this.waiting.entries()) {
      const body = at + FRAME_HEAD;
      at = body + frameLength(this.buffer, at) + FRAME_TAIL;
      const outcome = this.#outcomes[i] ?? null;
      if (keep === null || outcome === null) process.nextTick(done, failure, -1);
      else keep('entry' in outcome ? this.#entryOf(outcome, body, at - FRAME_TAIL) : outcome, done);
    }
    // Only `waiting` is emptied: the kernel may still read the buffer, so the group must not be reused.
    this.waiting.length = 0;
  }

  clear(): void {
    this.used = 0;
    this.awaited = false;
    this.leaves.length = 0;
    this.waiting.length = 0;
    this.#outcomes.length = 0;
  }

  /** Rebuilds the entry of a template record from its bytes. */
  #entryOf(form: RecordTemplate, start: number, end: number): AuditEntry {
    const record = JSON.parse(this.buffer.toString('utf8', start, end)) as AuditRecord; // encoded by `form`
    const { request_id, statement_hmac, rows, duration_us, standby } = record;
    return form.entry(request_id, statement_hmac, rows, duration_us, standby);
  }

  /** Completes the frame around `length` record bytes already in the buffer. */
  #frame(length: number, seq: number, done: AppendDone, outcome: AuditEntry | RecordTemplate | null): void {
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
