import { isUtf8 } from 'node:buffer';
import { error, protocolViolation } from './errors.js';
import type { TextEncoding } from './text-encoding.js';

/** Reads the fields of a message body. Reads beyond its end throw 08P01. */
export class MessageReader {
  readonly #body: Buffer;
  #offset = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  get remainingBytes(): number {
    return this.#body.length - this.#offset;
  }

  byte(): number {
    return this.#body.readUInt8(this.#skip(1));
  }

  int16(): number {
    return this.#body.readInt16BE(this.#skip(2));
  }

  int32(): number {
    return this.#body.readInt32BE(this.#skip(4));
  }

  uint32(): number {
    return this.#body.readUInt32BE(this.#skip(4));
  }

  /**
   * Reads the number of entries that follow, each of at least `entryBytes` bytes; rejects a number that does not fit in
   * the message.
   */
  count(entryBytes: number): number {
    const count = this.#body.readUInt16BE(this.#skip(2));
    if (count * entryBytes > this.remainingBytes) throw insufficientData();
    return count;
  }

  bytes(length: number): Buffer {
    const start = this.#skip(length);
    return this.#body.subarray(start, start + length);
  }

  /** Reads a NUL-terminated string. Throws 08P01 if the NUL is missing, 22021 if the string is not UTF-8. */
  cstring(): string {
    return utf8(this.untilNul());
  }

  /** Returns the bytes before the next NUL and skips the NUL. Throws 08P01 if there is none. */
  untilNul(): Buffer {
    const end = this.#body.indexOf(0, this.#offset);
    if (end < 0) throw protocolViolation('invalid string in message');
    const bytes = this.#body.subarray(this.#offset, end);
    this.#offset = end + 1;
    return bytes;
  }

  /** Rejects trailing bytes. */
  end(): void {
    if (this.remainingBytes !== 0) throw protocolViolation('invalid message format');
  }

  #skip(length: number): number {
    if (length > this.remainingBytes) throw insufficientData();
    const start = this.#offset;
    this.#offset += length;
    return start;
  }
}

function utf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw error('22021', 'invalid byte sequence for encoding "UTF8"');
  return bytes.toString('utf8');
}

function insufficientData() {
  return protocolViolation('insufficient data left in message');
}

const EMPTY = Buffer.alloc(0);
const FIRST_CHUNK = 512;
const NEXT_CHUNK = 16 * 1024;
/** Complete messages up to this size are copied; larger ones are passed on without copying. */
const COPY_LIMIT = 4 * 1024;
const HEADER = 5;

/** Writers for the fields of a message. Each throws RangeError if the value does not fit. */
export interface MessageFields {
  byte(value: number): void;
  int16(value: number): void;
  uint16(value: number): void;
  int32(value: number): void;
  uint32(value: number): void;
  /** Writes a NUL-terminated string; NUL inside the text becomes U+FFFD, so that a text cannot forge the next field. */
  cstring(text: string): void;
  bytes(bytes: Uint8Array): void;
}

/**
 * Encodes messages into a few large chunks. Keeps no buffer between two calls of `take`, so idle connections use none.
 *
 * INVARIANT: every byte below `#at` has been written, and the result of `take` ends with a complete message, so
 * uninitialized memory is never sent.
 */
export class MessageWriter implements MessageFields {
  encoding: TextEncoding | null = null;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #chunk: Buffer = EMPTY;
  /** Start, in the chunk, of the bytes that are not yet part of a piece. */
  #chunkStart = 0;
  #offset = 0;
  /** The start of the unfinished message, or −1. */
  #message = -1;

  get size(): number {
    return this.#pieceBytes + this.#offset - this.#chunkStart;
  }

  /** Appends a message with the fields that `write` writes. Discards the message if `write` throws. */
  message(type: number, write: (fields: MessageFields) => void = noFields): void {
    this.#requireBetweenMessages();
    this.#reserve(HEADER);
    this.#message = this.#offset;
    try {
      this.#chunk[this.#offset++] = type;
      this.uint32(0); // placeholder for the length
      write(this);
      this.#chunk.writeInt32BE(this.#offset - this.#message - 1, this.#message + 1);
    } catch (cause) {
      this.#offset = this.#message;
      throw cause;
    } finally {
      this.#message = -1;
    }
  }

  byte(value: number): void {
    this.#reserveField(1);
    this.#offset = this.#chunk.writeUInt8(value, this.#offset);
  }

  int16(value: number): void {
    this.#reserveField(2);
    this.#offset = this.#chunk.writeInt16BE(value, this.#offset);
  }

  uint16(value: number): void {
    this.#reserveField(2);
    this.#offset = this.#chunk.writeUInt16BE(value, this.#offset);
  }

  int32(value: number): void {
    this.#reserveField(4);
    this.#offset = this.#chunk.writeInt32BE(value, this.#offset);
  }

  uint32(value: number): void {
    this.#reserveField(4);
    this.#offset = this.#chunk.writeUInt32BE(value, this.#offset);
  }

  cstring(text: string): void {
    const safe = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
    if (this.encoding !== null) {
      this.bytes(this.encoding.encodeLossy(safe));
      this.byte(0);
      return;
    }
    this.#reserveField(Buffer.byteLength(safe) + 1);
    this.#offset += this.#chunk.write(safe, this.#offset, 'utf8');
    this.#chunk[this.#offset++] = 0;
  }

  bytes(bytes: Uint8Array): void {
    this.#reserveField(bytes.length);
    this.#append(bytes);
  }

  append(messages: Uint8Array): void {
    this.#requireBetweenMessages();
    if (messages.length <= COPY_LIMIT) {
      this.#reserve(messages.length);
      this.#append(messages);
      return;
    }
    this.#cut(this.#offset);
    this.#pieces.push(messages);
    this.#pieceBytes += messages.length;
  }

  take(): Uint8Array[] {
    this.#requireBetweenMessages();
    this.#cut(this.#offset);
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.#chunk = EMPTY;
    this.#chunkStart = 0;
    this.#offset = 0;
    return pieces;
  }

  #requireBetweenMessages(): void {
    if (this.#message >= 0) throw new Error('a message is being written');
  }

  #reserveField(bytes: number): void {
    if (this.#message < 0) throw new Error('a field stands in no message');
    this.#reserve(bytes);
  }

  #append(bytes: Uint8Array): void {
    this.#chunk.set(bytes, this.#offset);
    this.#offset += bytes.length;
  }

  #cut(end: number): void {
    if (end === this.#chunkStart) return;
    this.#pieces.push(this.#chunk.subarray(this.#chunkStart, end));
    this.#pieceBytes += end - this.#chunkStart;
    this.#chunkStart = end;
  }

  /** Reserves space, moving an unfinished message to the new chunk. */
  #reserve(bytes: number): void {
    if (this.#chunk.length - this.#offset >= bytes) return;
    const messageStart = this.#message < 0 ? this.#offset : this.#message;
    const unfinished = this.#chunk.subarray(messageStart, this.#offset);
    const defaultSize = this.#chunk === EMPTY ? FIRST_CHUNK : NEXT_CHUNK;
    const chunk = Buffer.allocUnsafe(Math.max(defaultSize, 2 * unfinished.length, unfinished.length + bytes));
    this.#cut(messageStart);
    unfinished.copy(chunk);
    this.#chunk = chunk;
    this.#chunkStart = 0;
    this.#offset = unfinished.length;
    if (this.#message >= 0) this.#message = 0;
  }
}

/** Encodes messages that are sent repeatedly, so that each is encoded only once. */
export function encodeOnce(write: (out: MessageWriter) => void): Uint8Array {
  const out = new MessageWriter();
  write(out);
  return Buffer.concat(out.take());
}

function noFields(): void {
  // message without a body
}
