const EMPTY = Buffer.alloc(0);
const FIRST_CHUNK = 1024;
const NEXT_CHUNK = 16 * 1024;
/** Finished messages up to this size are copied next to each other; larger ones travel as they are. */
const COPY_LIMIT = 4 * 1024;

/**
 * Encodes messages one after the other into few large pieces. It keeps nothing between two `take`s, so an idle
 * connection costs no buffer.
 */
export class MessageWriter {
  #pieces: Uint8Array[] = [];
  #pieceBytes = 0;
  #chunk: Buffer = EMPTY;
  /** First byte of the chunk that is in no piece yet. */
  #from = 0;
  #at = 0;
  /** Where the unfinished message begins, or −1. */
  #message = -1;

  /** Bytes that wait to be taken. */
  get size(): number {
    return this.#pieceBytes + this.#at - this.#from;
  }

  begin(type: number): void {
    this.#reserve(5);
    this.#message = this.#at;
    this.#chunk[this.#at] = type;
    this.#at += 5;
  }

  end(): void {
    this.#chunk.writeUInt32BE(this.#at - this.#message - 1, this.#message + 1);
    this.#message = -1;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#at = this.#chunk.writeUInt8(value, this.#at);
  }

  int16(value: number): void {
    this.#reserve(2);
    this.#at = this.#chunk.writeInt16BE(value, this.#at);
  }

  int32(value: number): void {
    this.#reserve(4);
    this.#at = this.#chunk.writeInt32BE(value, this.#at);
  }

  /** OIDs. */
  uint32(value: number): void {
    this.#reserve(4);
    this.#at = this.#chunk.writeUInt32BE(value, this.#at);
  }

  /** NUL-terminated; a NUL inside would let a text forge the next field, so it becomes U+FFFD. */
  cstring(text: string): void {
    const safe = text.includes('\0') ? text.replaceAll('\0', '\uFFFD') : text;
    this.#reserve(Buffer.byteLength(safe) + 1);
    this.#at += this.#chunk.write(safe, this.#at, 'utf8');
    this.#chunk[this.#at++] = 0;
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#chunk.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** Finished messages, passed on byte for byte. */
  finished(messages: Uint8Array): void {
    if (messages.length <= COPY_LIMIT) {
      this.bytes(messages);
      return;
    }
    this.#cut(this.#at);
    this.#pieces.push(messages);
    this.#pieceBytes += messages.length;
  }

  /** All finished messages, in order. */
  take(): Uint8Array[] {
    this.#cut(this.#at);
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#pieceBytes = 0;
    this.#chunk = EMPTY;
    this.#from = 0;
    this.#at = 0;
    return pieces;
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
    this.#cut(begun);
    const moved = this.#chunk.subarray(begun, this.#at);
    const usual = this.#chunk === EMPTY ? FIRST_CHUNK : NEXT_CHUNK;
    const chunk = Buffer.allocUnsafe(Math.max(usual, 2 * moved.length, moved.length + bytes));
    moved.copy(chunk);
    this.#chunk = chunk;
    this.#from = 0;
    this.#at = moved.length;
    if (this.#message >= 0) this.#message = 0;
  }
}
