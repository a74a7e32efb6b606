import { fatal } from './errors.js';

/** Message type and body, without the header. The body is a view that stays valid. */
export interface MessageFrame {
  readonly type: number;
  readonly body: Buffer;
}

/** The largest length field for a message type; throws for a type that is not allowed now. */
export type LengthLimit = (type: number) => number;

const EMPTY = Buffer.alloc(0);
const HEADER = 5;
/** MAX_STARTUP_PACKET_LENGTH in Postgres. */
const MAX_STARTUP_PACKET = 10_000;

/**
 * Splits a byte stream into messages. Memory grows with the bytes received (by doubling), never with the length in a
 * header. A message within one chunk is not copied.
 */
export class FrameDecoder {
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;

  get buffered(): number {
    return this.#end - this.#start;
  }

  /** The next byte, without consuming it; null if there is none. */
  peek(): number | null {
    return this.buffered === 0 ? null : this.#bytes.readUInt8(this.#start);
  }

  /** The buffer with the received bytes from `start` to `end`; valid until the next `push`. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

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

  takeAll(): Buffer {
    return this.#take(this.buffered);
  }

  /**
   * Returns the next untyped packet (before authentication), including its length; null until it is complete. Throws
   * FATAL 08P01.
   */
  packet(): Buffer | null {
    if (this.buffered < 4) return null;
    const length = this.#bytes.readUInt32BE(this.#start);
    if (length < 8 || length > MAX_STARTUP_PACKET) throw fatal('08P01', 'invalid length of startup packet');
    return this.buffered < length ? null : this.#take(length);
  }

  startup(): Buffer | null {
    return this.packet()?.subarray(4) ?? null;
  }

  /**
   * Returns the next typed message including its header; null until it is complete. Throws FATAL 08P01 once a header is
   * invalid.
   */
  message(limit: LengthLimit): Buffer | null {
    if (this.buffered === 0) return null;
    const type = this.#bytes.readUInt8(this.#start);
    const largest = limit(type);
    if (this.buffered < HEADER) return null;
    // INVARIANT: unsigned, so that no length wraps around and splits one message in two (CVE-2024-27304).
    const length = this.#bytes.readUInt32BE(this.#start + 1);
    if (length < 4 || length > largest) throw fatal('08P01', 'invalid message length');
    if (this.buffered < length + 1) return null;
    return this.#take(length + 1);
  }

  /** Returns the next typed message as type and body; null until it is complete. Throws FATAL 08P01. */
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

  /** Moves unread bytes to a larger buffer; the old one stays valid for bodies already returned. */
  #grow(extra: number): void {
    const unread = this.#bytes.subarray(this.#start, this.#end);
    const roomier = Buffer.allocUnsafe(Math.max(2 * unread.length, unread.length + extra));
    unread.copy(roomier);
    this.#bytes = roomier;
    this.#start = 0;
    this.#end = unread.length;
  }
}
