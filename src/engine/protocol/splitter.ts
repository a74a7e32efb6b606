import { InternalError } from 'osl-compiler';

const EMPTY: Buffer = Buffer.alloc(0);
const DATA_ROW = 0x44;
const HEADER = 5;
/** Maximum length of a message in bytes, a limit of Postgres. */
const MAX_MESSAGE = 0x4000_0000;
/** Number of bytes kept of a large message that is not a row: errors and notices may quote values of any size. */
const START_BYTES = 65_536;

/**
 * Incrementally splits a backend's byte stream into messages.
 *
 * After `next()` returns true, `buffer[start, end)` holds one whole message, including its header, or a run of
 * adjacent DataRow messages (`rows` of them). It is a view of the pushed chunk; only a message that straddles two
 * chunks is copied, once.
 *
 * A row that straddles two chunks and is larger than `large` bytes is announced first: it is neither stored nor read
 * before `keep` or `skip` is called. Of other messages of that size, only the beginning is kept.
 */
export class BackendSplitter {
  type = 0;
  buffer: Buffer = EMPTY;
  start = 0;
  end = 0;
  /** Number of DataRow messages in the view; 0 for any other type. */
  rows = 0;

  #chunk: Buffer = EMPTY;
  #at = 0;
  /** An incomplete message, of which only the first `#filled` bytes are present. */
  #partial: Buffer | null = null;
  #filled = 0;
  /** Number of bytes left to skip of a message that is not kept. */
  #toSkip = 0;
  /** Number of bytes to skip after the kept part of the partial message. */
  #toSkipAfter = 0;
  #announced = 0;
  readonly #large: number;

  constructor(large = Number.POSITIVE_INFINITY) {
    this.#large = large;
  }

  /** Size of the announced large row, of which only the header has been read; 0 if there is none. */
  get announced(): number {
    return this.#announced;
  }

  /** Keeps the announced row. */
  keep(): void {
    this.#begin(DATA_ROW, this.#announced, this.#announced);
    this.#announced = 0;
  }

  /** Skips the announced row. */
  skip(): void {
    this.#toSkip = this.#announced - HEADER;
    this.#announced = 0;
  }

  /** True if all pushed data has been consumed, so that `push` may be called. */
  get drained(): boolean {
    return this.#at >= this.#chunk.length;
  }

  /** Adds a chunk; the previous one must have been consumed. The splitter keeps views of it. */
  push(chunk: Uint8Array): void {
    if (!this.drained) throw new InternalError('a chunk was pushed before the last was consumed');
    this.#chunk = Buffer.isBuffer(chunk)
      ? chunk
      : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    this.#at = 0;
  }

  /** The message body, after type and length. */
  body(): Buffer {
    return this.buffer.subarray(this.start + HEADER, this.end);
  }

  /** First byte of the body; 0 if it is empty. */
  firstByte(): number {
    return this.end > this.start + HEADER ? (this.buffer[this.start + HEADER] ?? 0) : 0;
  }

  /** Moves to the next message, or to the next rows (about `maxBytes` bytes). Returns false if more input is needed. */
  next(maxBytes = Number.POSITIVE_INFINITY): boolean {
    if (this.#announced > 0) return false;
    if (this.#toSkip > 0 && !this.#skipReceived()) return false;
    if (this.#partial !== null) return this.#completePartial(this.#partial);
    const chunk = this.#chunk;
    const start = this.#at;
    const end = messageEnd(chunk, start);
    if (end > chunk.length) return this.#startPartial(start, end);
    this.type = chunk[start] ?? 0;
    this.buffer = chunk;
    this.start = start;
    this.rows = 0;
    this.end = end;
    if (this.type === DATA_ROW) this.#extendRun(end, start + maxBytes);
    this.#at = this.end;
    return true;
  }

  #extendRun(firstEnd: number, limit: number): void {
    const chunk = this.#chunk;
    let end = firstEnd;
    let rows = 1;
    while (end < limit && chunk[end] === DATA_ROW) {
      const next = messageEnd(chunk, end);
      if (next > chunk.length) break;
      end = next;
      rows += 1;
    }
    this.end = end;
    this.rows = rows;
  }

  #startPartial(start: number, end: number): boolean {
    const available = this.#chunk.length - start;
    if (available >= HEADER && end - start > this.#large) {
      this.#at = start + HEADER;
      this.#beginLarge(this.#chunk[start] ?? 0, end - start);
      return this.next();
    }
    if (available > 0) {
      this.#partial = Buffer.allocUnsafe(available < HEADER ? HEADER : end - start);
      this.#filled = this.#chunk.copy(this.#partial, 0, start);
    }
    this.#at = this.#chunk.length;
    return false;
  }

  #completePartial(header: Buffer): boolean {
    let partial = header;
    this.#fill(partial);
    if (this.#filled === HEADER && partial.length === HEADER) {
      const size = messageEnd(partial, 0);
      if (size > this.#large) {
        this.#partial = null;
        this.#beginLarge(header[0] ?? 0, size);
        return this.next();
      }
      if (size > HEADER) {
        partial = Buffer.allocUnsafe(size);
        header.copy(partial);
        this.#partial = partial;
        this.#fill(partial);
      }
    }
    if (this.#filled < partial.length) return false;
    this.#partial = null;
    this.type = partial[0] ?? 0;
    this.buffer = partial;
    this.start = 0;
    this.end = partial.length;
    this.rows = this.type === DATA_ROW ? 1 : 0;
    this.#toSkip = this.#toSkipAfter;
    this.#toSkipAfter = 0;
    return true;
  }

  #beginLarge(type: number, size: number): void {
    if (type === DATA_ROW) this.#announced = size;
    else this.#begin(type, size, START_BYTES);
  }

  /** Starts a message of `size` bytes, of which the first `storedBytes` will be stored. */
  #begin(type: number, size: number, storedBytes: number): void {
    const partial = Buffer.allocUnsafe(storedBytes);
    partial[0] = type;
    partial.writeInt32BE(size - 1, 1);
    this.#partial = partial;
    this.#filled = HEADER;
    this.#toSkipAfter = size - storedBytes;
  }

  /** Skips received bytes that are not kept; returns true once all have been skipped. */
  #skipReceived(): boolean {
    const skipped = Math.min(this.#toSkip, this.#chunk.length - this.#at);
    this.#toSkip -= skipped;
    this.#at += skipped;
    return this.#toSkip === 0;
  }

  #fill(partial: Buffer): void {
    const copied = this.#chunk.copy(partial, this.#filled, this.#at);
    this.#filled += copied;
    this.#at += copied;
  }
}

/** Returns the end of the message at `start`; a position beyond the chunk if the message is incomplete. */
function messageEnd(chunk: Buffer, start: number): number {
  if (start + HEADER > chunk.length) return chunk.length + 1;
  const length = chunk.readInt32BE(start + 1);
  if (length < 4 || length > MAX_MESSAGE)
    throw new InternalError(`the upstream sent a message of length ${length}`);
  return start + 1 + length;
}
