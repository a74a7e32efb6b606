/** Below this many bytes a loop beats a native copy. */
const SHORT = 48;

/**
 * Bytes under construction, in a buffer that grows as needed.
 *
 * INVARIANT: every byte below `at` has been written, so that memory which held something else never leaves.
 */
export class GrowingBytes {
  /** Room for what is written; valid until the next `reserve`. */
  protected bytes: Buffer;
  /** Offset of the next byte. */
  protected at = 0;

  constructor(capacity: number) {
    this.bytes = Buffer.allocUnsafe(capacity);
  }

  /** Bytes written so far. */
  get length(): number {
    return this.at;
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  /** `text` as UTF-8. */
  text(text: string): void {
    this.reserve(text.length * 3); // UTF-8 bytes of one UTF-16 unit, at most
    this.at += this.bytes.write(text, this.at, 'utf8');
  }

  /** `source[start … end)` as it is. */
  copy(source: Uint8Array, start = 0, end = source.length): void {
    this.reserve(end - start);
    this.append(source, start, end);
  }

  /** Room for `more` bytes. */
  protected reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }

  /** Copies into room that was reserved. */
  protected append(source: Uint8Array, start: number, end: number): void {
    if (end - start > SHORT) {
      const piece = source.subarray(start, end);
      this.bytes.set(piece, this.at);
      this.at += piece.length; // what was written, even where `end` lies beyond the source
      return;
    }
    const { bytes } = this;
    let { at } = this;
    for (let from = start; from < end; from++) bytes[at++] = source[from] ?? 0;
    this.at = at;
  }
}
