import { type Digest, digest, HASH_BYTES, putDigest } from './format.js';

/** The writer's end of the chain: h = SHA-256(previous h ‖ leaf hash), one record after another. */
export class Chain {
  /** The next hash's input: the last chain hash, and room for a leaf. */
  readonly #link = Buffer.alloc(2 * HASH_BYTES);
  #last: Digest;

  /** @param last chain hash so far */
  constructor(last: Buffer) {
    this.#last = last.toString('latin1');
    putDigest(this.#link, 0, this.#last);
  }

  /** Chain hash after the last record. */
  get last(): Digest {
    return this.#last;
  }

  add(leaf: Digest): Digest {
    putDigest(this.#link, HASH_BYTES, leaf);
    this.#last = digest(this.#link);
    putDigest(this.#link, 0, this.#last);
    return this.#last;
  }
}
