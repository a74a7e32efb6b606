/** Length in bytes below which a loop is faster than a native copy. */
const LOOP_BYTES = 48;

/**
 * A growing byte buffer.
 *
 * INVARIANT: every byte below `at` has been written, so uninitialized memory is never exposed.
 */
export class GrowingBytes {
  /** The backing buffer, valid until the next `reserve`. */
  protected bytes: Buffer;
  /** Offset of the next byte. */
  protected at = 0;

  constructor(capacity: number) {
    this.bytes = Buffer.allocUnsafe(capacity);
  }

  /** Number of bytes written so far. */
  get length(): number {
    return this.at;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  /** Appends `text` in UTF-8. */
  text(text: string): void {
    this.reserve(text.length * 3); // UTF-8 bytes of one UTF-16 unit, at most
    this.at += this.bytes.write(text, this.at, 'utf8');
  }

  /** Appends `source[start … end)`. */
  copy(source: Uint8Array, start = 0, end = source.length): void {
    this.reserve(end - start);
    this.append(source, start, end);
  }

  /** Ensures room for `more` bytes. */
  protected reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }

  /** Copies into space that has been reserved. */
  protected append(source: Uint8Array, start: number, end: number): void {
    if (end - start > LOOP_BYTES) {
      const piece = source.subarray(start, end);
      this.bytes.set(piece, this.at);
      this.at += piece.length; // not `end - start`: `end` may lie beyond the source
      return;
    }
    const { bytes } = this;
    let { at } = this;
    for (let from = start; from < end; from++) bytes[at++] = source[from] ?? 0;
    this.at = at;
  }
}
