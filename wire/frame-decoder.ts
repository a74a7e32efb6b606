import { fatal } from './errors.js';

/** One typed message: its type byte and its body without the header. The body is a view, valid as long as held. */
export interface MessageFrame {
  readonly type: number;
  readonly body: Buffer;
}

/** The largest length field that a message type may carry; throws for a type that must not come now. */
export type LengthLimit = (type: number) => number;

const EMPTY = Buffer.alloc(0);
const HEADER = 5;
/** Postgres: MAX_STARTUP_PACKET_LENGTH. */
const MAX_STARTUP_PACKET = 10_000;

/**
 * Cuts a byte stream into messages, whatever the chunks. Memory follows the bytes that have come, never the
 * length that a header claims: room grows by doubling. A message within one chunk is not copied.
 */
export class FrameDecoder {
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;

  /** Bytes received and not yet taken. */
  get buffered(): number {
    return this.#end - this.#start;
  }

  /** The next byte without taking it; null if there is none. */
  peek(): number | null {
    return this.buffered === 0 ? null : this.#bytes.readUInt8(this.#start);
  }

  /** Received bytes from `start` to `end`, for a look ahead; valid until the next `push`. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  /** Takes `length` bytes that were looked at. */
  skip(length: number): void {
    this.#take(Math.min(length, this.buffered));
  }

  push(chunk: Buffer): void {
    if (this.buffered === 0) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#end = chunk.length;
      return;
    }
    if (this.#bytes.length - this.#end < chunk.length) this.#grow(chunk.length);
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  /** Takes all bytes, whatever they are: a TLS record that came first belongs to TLS. */
  takeAll(): Buffer {
    return this.#take(this.buffered);
  }

  /** An untyped packet (before authentication), its length included, or null until it is whole. FATAL 08P01. */
  packet(): Buffer | null {
    if (this.buffered < 4) return null;
    const length = this.#bytes.readUInt32BE(this.#start);
    if (length < 8 || length > MAX_STARTUP_PACKET) throw fatal('08P01', 'invalid length of startup packet');
    return this.buffered < length ? null : this.#take(length);
  }

  /** The body of an untyped packet. FATAL 08P01. */
  startup(): Buffer | null {
    return this.packet()?.subarray(4) ?? null;
  }

  /** The next typed message, header included, or null until it is whole. FATAL 08P01 as soon as a header is wrong. */
  message(limit: LengthLimit): Buffer | null {
    if (this.buffered === 0) return null;
    const type = this.#bytes.readUInt8(this.#start);
    const largest = limit(type);
    if (this.buffered < HEADER) return null;
    // INVARIANT: unsigned, so that no length wraps and splits one message in two (CVE-2024-27304).
    const length = this.#bytes.readUInt32BE(this.#start + 1);
    if (length < 4 || length > largest) throw fatal('08P01', 'invalid message length');
    if (this.buffered < length + 1) return null;
    return this.#take(length + 1);
  }

  /** The next typed message, taken apart into type and body; null until it is whole. FATAL 08P01. */
  next(limit: LengthLimit): MessageFrame | null {
    const message = this.message(limit);
    return message === null ? null : { type: message.readUInt8(0), body: message.subarray(HEADER) };
  }

  #take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.#start, this.#start + length);
    this.#start += length;
    // An idle connection holds no buffer.
    if (this.buffered === 0) {
      this.#bytes = EMPTY;
      this.#start = 0;
      this.#end = 0;
    }
    return taken;
  }

  /** Moves what is unread to new room; the old stays untouched for the bodies that were handed out. */
  #grow(extra: number): void {
    const unread = this.#bytes.subarray(this.#start, this.#end);
    const roomier = Buffer.allocUnsafe(Math.max(2 * unread.length, unread.length + extra));
    unread.copy(roomier);
    this.#bytes = roomier;
    this.#start = 0;
    this.#end = unread.length;
  }
}
