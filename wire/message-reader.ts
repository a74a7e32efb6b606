import { isUtf8 } from 'node:buffer';
import { error, protocolViolation } from './errors.js';

/** Reads the fields of a message body. Reads beyond its end throw 08P01. */
export class MessageReader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  get left(): number {
    return this.#body.length - this.#at;
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

  /** Reads the count of entries of at least `entryBytes` each; rejects counts that do not fit in the message. */
  count(entryBytes: number): number {
    const count = this.#body.readUInt16BE(this.#skip(2));
    if (count * entryBytes > this.left) throw insufficient();
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
    const end = this.#body.indexOf(0, this.#at);
    if (end < 0) throw protocolViolation('invalid string in message');
    const bytes = this.#body.subarray(this.#at, end);
    this.#at = end + 1;
    return bytes;
  }

  /** Rejects trailing bytes. */
  end(): void {
    if (this.left !== 0) throw protocolViolation('invalid message format');
  }

  #skip(length: number): number {
    if (length > this.left) throw insufficient();
    const start = this.#at;
    this.#at += length;
    return start;
  }
}

function utf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw error('22021', 'invalid byte sequence for encoding "UTF8"');
  return bytes.toString('utf8');
}

function insufficient() {
  return protocolViolation('insufficient data left in message');
}
