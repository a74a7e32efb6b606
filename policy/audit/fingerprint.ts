import { hash } from 'node:crypto';

const BLOCK = 64;
const DIGEST = 32;

/** HMAC-SHA-256 under one key, as base64url: two hashes over buffers that are kept, where an Hmac is made each time. */
export class Fingerprints {
  #inner = Buffer.allocUnsafe(1_024);
  readonly #outer = Buffer.allocUnsafe(BLOCK + DIGEST);

  /** @param key at most one block, 64 bytes */
  constructor(key: Uint8Array) {
    if (key.length > BLOCK) throw new RangeError('the key is longer than a block');
    for (let i = 0; i < BLOCK; i++) {
      const byte = key[i] ?? 0;
      this.#inner[i] = byte ^ 0x36;
      this.#outer[i] = byte ^ 0x5c;
    }
  }

  of(text: string): string {
    const most = BLOCK + 3 * text.length; // a UTF-16 unit takes at most three bytes in UTF-8
    if (most > MAX_KEPT) {
      const once = Buffer.concat([this.#inner.subarray(0, BLOCK), Buffer.from(text, 'utf8')]);
      return this.#finished(once);
    }
    if (most > this.#inner.length) {
      const larger = Buffer.allocUnsafe(2 * most);
      this.#inner.copy(larger, 0, 0, BLOCK);
      this.#inner = larger;
    }
    const length = this.#inner.write(text, BLOCK, 'utf8');
    return this.#finished(this.#inner.subarray(0, BLOCK + length));
  }

  #finished(inner: Uint8Array): string {
    this.#outer.write(hash('sha256', inner, 'binary'), BLOCK, 'latin1');
    return hash('sha256', this.#outer, 'base64url');
  }
}

/** Texts that take more are copied for themselves, so that no large buffer stays behind. */
const MAX_KEPT = 262_144;
