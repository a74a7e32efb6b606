import { hash } from 'node:crypto';

const BLOCK = 64;
const DIGEST = 32;
/** Maximum length, in bytes, of a text that is copied byte by byte into the buffer for short texts. */
const SHORT = 448;

/**
 * HMAC-SHA-256 with a fixed key, as base64url. Computes two plain hashes over reused buffers, which is faster than
 * creating an Hmac object for each call.
 */
export class Fingerprints {
  #inner = Buffer.allocUnsafe(1_024);
  readonly #outer = Buffer.allocUnsafe(BLOCK + DIGEST);
  /** Buffer for short texts, with one view for each length, since creating a view takes as long as hashing a block. */
  readonly #short = Buffer.allocUnsafe(BLOCK + SHORT);
  readonly #views = new Map<number, Buffer>();

  /** @param key at most 64 bytes, one hash block */
  constructor(key: Uint8Array) {
    if (key.length > BLOCK) throw new RangeError('the key is longer than a block');
    for (let i = 0; i < BLOCK; i++) {
      const byte = key[i] ?? 0;
      this.#inner[i] = byte ^ 0x36;
      this.#short[i] = byte ^ 0x36;
      this.#outer[i] = byte ^ 0x5c;
    }
  }

  of(text: string): string {
    // A UTF-16 code unit takes at most three bytes in UTF-8.
    const inner = this.#room(3 * text.length);
    if (inner === null) return this.#once(Buffer.from(text, 'utf8'));
    const length = inner.write(text, BLOCK, 'utf8');
    return this.#finished(inner.subarray(0, BLOCK + length));
  }

  /** Same result as `of`, for text given as the UTF-8 bytes in [start, end). */
  ofBytes(bytes: Uint8Array, start: number, end: number): string {
    if (end - start <= SHORT) return this.#ofShort(bytes, start, end - start);
    const part = bytes.subarray(start, end);
    const inner = this.#room(part.length);
    if (inner === null) return this.#once(part);
    inner.set(part, BLOCK);
    return this.#finished(inner.subarray(0, BLOCK + part.length));
  }

  #ofShort(bytes: Uint8Array, start: number, length: number): string {
    for (let i = 0; i < length; i++) this.#short[BLOCK + i] = bytes[start + i] ?? 0;
    let view = this.#views.get(length);
    if (view === undefined) {
      view = this.#short.subarray(0, BLOCK + length);
      this.#views.set(length, view);
    }
    return this.#finished(view);
  }

  /** Returns the reusable buffer with room for `length` bytes after the key; null if that exceeds `MAX_KEPT`. */
  #room(length: number): Buffer | null {
    const most = BLOCK + length;
    if (most > MAX_KEPT) return null;
    if (most > this.#inner.length) {
      const larger = Buffer.allocUnsafe(2 * most);
      this.#inner.copy(larger, 0, 0, BLOCK);
      this.#inner = larger;
    }
    return this.#inner;
  }

  #once(bytes: Uint8Array): string {
    return this.#finished(Buffer.concat([this.#inner.subarray(0, BLOCK), bytes]));
  }

  #finished(inner: Uint8Array): string {
    this.#outer.write(hash('sha256', inner, 'binary'), BLOCK, 'latin1');
    return hash('sha256', this.#outer, 'base64url');
  }
}

/** Maximum size, in bytes, of key block and text in the reusable buffer; longer texts use a temporary buffer. */
const MAX_KEPT = 262_144;
