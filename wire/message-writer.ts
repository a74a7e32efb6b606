import type { TextEncoding } from './text-encoding.js';

const EMPTY = Buffer.alloc(0);
const FIRST_CHUNK = 512;
const NEXT_CHUNK = 16 * 1024;
/** Finished messages up to this size are copied next to each other; larger ones travel as they are. */
const COPY_LIMIT = 4 * 1024;
/** Type byte and length. */
const HEADER = 5;

/** Field writers of a message. Each throws RangeError for a value that its field cannot hold. */
export interface MessageFields {
  byte(value: number): void;
  /** Lengths of types, and formats. */
  int16(value: number): void;
  /** Counts: up to 65,535 parameters and columns. */
  uint16(value: number): void;
  int32(value: number): void;
  /** OIDs. */
  uint32(value: number): void;
  /** NUL-terminated; a NUL inside would let a text forge the next field, so it becomes U+FFFD. */
  cstring(text: string): void;
  bytes(bytes: Uint8Array): void;
}

/**
 * Encodes messages one after the other into few large pieces. It keeps nothing between two `take`s, so an idle
 * connection costs no buffer.
 *
 * INVARIANT: every byte below `#at` has been written, and what is taken ends with a whole message: memory that the
 * process used for something else never leaves it.
 */
export class MessageWriter implements MessageFields {
  /** In which its texts are written; null for UTF-8. */
  encoding: TextEncoding | null = null;
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #chunk: Buffer = EMPTY;
  /** First byte of the chunk that is in no piece yet. */
  #from = 0;
  #at = 0;
  /** Start of the unfinished message, or −1. */
  #message = -1;

  /** Bytes that wait to be taken. */
  get size(): number {
    return this.#pieceBytes + this.#at - this.#from;
  }

  /** Appends a message, whose fields `write` gives in order. Where it throws, nothing of the message is kept. */
  message(type: number, write: (fields: MessageFields) => void = noFields): void {
    this.#requireBetweenMessages();
    this.#reserve(HEADER);
    this.#message = this.#at;
    try {
      this.#chunk[this.#at++] = type;
      this.uint32(0); // until the length is known
      write(this);
      this.#chunk.writeInt32BE(this.#at - this.#message - 1, this.#message + 1);
    } catch (cause) {
      this.#at = this.#message;
      throw cause;
    } finally {
      this.#message = -1;
    }
  }

  byte(value: number): void {
    this.#room(1);
    this.#at = this.#chunk.writeUInt8(value, this.#at);
  }

  int16(value: number): void {
    this.#room(2);
    this.#at = this.#chunk.writeInt16BE(value, this.#at);
  }

  uint16(value: number): void {
    this.#room(2);
    this.#at = this.#chunk.writeUInt16BE(value, this.#at);
  }

  int32(value: number): void {
    this.#room(4);
    this.#at = this.#chunk.writeInt32BE(value, this.#at);
  }

  uint32(value: number): void {
    this.#room(4);
    this.#at = this.#chunk.writeUInt32BE(value, this.#at);
  }

  cstring(text: string): void {
    const safe = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
    if (this.encoding !== null) {
      this.bytes(this.encoding.encodeLossy(safe));
      this.byte(0);
      return;
    }
    this.#room(Buffer.byteLength(safe) + 1);
    this.#at += this.#chunk.write(safe, this.#at, 'utf8');
    this.#chunk[this.#at++] = 0;
  }

  bytes(bytes: Uint8Array): void {
    this.#room(bytes.length);
    this.#append(bytes);
  }

  /** Finished messages, passed on byte for byte. */
  finished(messages: Uint8Array): void {
    this.#requireBetweenMessages();
    if (messages.length <= COPY_LIMIT) {
      this.#reserve(messages.length);
      this.#append(messages);
      return;
    }
    this.#cut(this.#at);
    this.#pieces.push(messages);
    this.#pieceBytes += messages.length;
  }

  /** All messages, in order. */
  take(): Uint8Array[] {
    this.#requireBetweenMessages();
    this.#cut(this.#at);
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.#chunk = EMPTY;
    this.#from = 0;
    this.#at = 0;
    return pieces;
  }

  #requireBetweenMessages(): void {
    if (this.#message >= 0) throw new Error('a message is being written');
  }

  /** Makes room for a field of the message that is being written. */
  #room(bytes: number): void {
    if (this.#message < 0) throw new Error('a field stands in no message');
    this.#reserve(bytes);
  }

  #append(bytes: Uint8Array): void {
    this.#chunk.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  #cut(end: number): void {
    if (end === this.#from) return;
    this.#pieces.push(this.#chunk.subarray(this.#from, end));
    this.#pieceBytes += end - this.#from;
    this.#from = end;
  }

  /** Makes room, moving an unfinished message whole to the new chunk. */
  #reserve(bytes: number): void {
    if (this.#chunk.length - this.#at >= bytes) return;
    const begun = this.#message < 0 ? this.#at : this.#message;
    const moved = this.#chunk.subarray(begun, this.#at);
    const usual = this.#chunk === EMPTY ? FIRST_CHUNK : NEXT_CHUNK;
    const chunk = Buffer.allocUnsafe(Math.max(usual, 2 * moved.length, moved.length + bytes));
    this.#cut(begun);
    moved.copy(chunk);
    this.#chunk = chunk;
    this.#from = 0;
    this.#at = moved.length;
    if (this.#message >= 0) this.#message = 0;
  }
}

/** Bytes that `write` writes, for messages that are sent repeatedly. */
export function writtenOnce(write: (out: MessageWriter) => void): Uint8Array {
  const out = new MessageWriter();
  write(out);
  return Buffer.concat(out.take());
}

function noFields(): void {
  // Many messages are their type alone.
}
