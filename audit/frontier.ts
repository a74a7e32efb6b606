import { type Digest, digest, GENESIS, HASH_BYTES, putDigest } from './format.js';

const EMPTY_ROOT = digest(Buffer.alloc(0)); // RFC 6962: hash of the empty string

const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 0x01;

function nodeHash(left: Digest, right: Digest): Digest {
  putDigest(node, 1, left);
  putDigest(node, 1 + HASH_BYTES, right);
  return digest(node);
}

/**
 * Right edge of an RFC 6962 Merkle tree: the roots of its complete subtrees, largest first, one for each 1 bit of the
 * size. This is enough to append leaves and compute the root, in O(log n) memory.
 */
export class Frontier {
  #roots: Digest[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get roots(): readonly Digest[] {
    return this.#roots;
  }

  /** @throws RangeError if the number of roots does not fit `size` */
  static of(size: number, roots: readonly Digest[]): Frontier {
    const digits = [...size.toString(2)].filter((digit) => digit === '1').length;
    if (roots.length !== digits) throw new RangeError(`a tree of ${size} leaves has ${digits} roots`);
    const frontier = new Frontier();
    frontier.#roots = [...roots];
    frontier.#size = size;
    return frontier;
  }

  copy(): Frontier {
    const copy = new Frontier();
    copy.#roots = [...this.#roots];
    copy.#size = this.#size;
    return copy;
  }

  push(leaf: Digest): void {
    let root = leaf;
    for (let digits = this.#size; digits % 2 === 1; digits = Math.floor(digits / 2)) {
      // Each trailing 1 bit of the size has a subtree, so pop() returns a root.
      root = nodeHash(this.#roots.pop() ?? EMPTY_ROOT, root);
    }
    this.#roots.push(root);
    this.#size += 1;
  }

  root(): Buffer {
    const right = this.#roots.at(-1) ?? EMPTY_ROOT;
    const root = this.#roots.slice(0, -1).reduceRight((under, left) => nodeHash(left, under), right);
    return Buffer.from(root, 'latin1');
  }
}

/** Position between two segments, with the state of the log up to there. */
export interface LogBase {
  /** Number of the preceding segment, or 0. */
  readonly segment: number;
  readonly epoch: number;
  readonly seq: number;
  readonly chain: Buffer;
  readonly frontier: Frontier;
}

/** Position before the first record. */
export const BEGINNING: LogBase = Object.freeze({
  segment: 0,
  epoch: 0,
  seq: 0,
  chain: GENESIS,
  frontier: new Frontier(),
});

/** Checkpoints that already exist. */
export interface SignedState {
  /** Length of the permanent checkpoint file in bytes. */
  readonly end: number;
  /** Tree size of the last permanent checkpoint, or -1. */
  readonly lasting: number;
  /** Tree size of the newest checkpoint, or -1. */
  readonly newest: number;
}
