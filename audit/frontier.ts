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
  readonly #roots: Digest[];
  #size: number;

  /** @param roots one for each 1 bit of `size` */
  protected constructor(size: number, roots: readonly Digest[]) {
    this.#size = size;
    this.#roots = [...roots];
  }

  static empty(): Frontier {
    return new Frontier(0, []);
  }

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
    return new Frontier(size, roots);
  }

  copy(): Frontier {
    return new Frontier(this.#size, this.#roots);
  }

  push(leaf: Digest): void {
    let root = leaf;
    let height = 0;
    this.completed(height, this.#size, root);
    for (let digits = this.#size; digits % 2 === 1; digits = Math.floor(digits / 2)) {
      // Each trailing 1 bit of the size has a subtree, so pop() returns a root.
      root = nodeHash(this.#roots.pop() ?? EMPTY_ROOT, root);
      height += 1;
      this.completed(height, Math.floor(digits / 2), root);
    }
    this.#roots.push(root);
    this.#size += 1;
  }

  /** Called for each subtree that a new leaf completes: the one that covers [index, index + 1) · 2^height leaves. */
  protected completed(_height: number, _index: number, _root: Digest): void {}

  root(): Buffer {
    return Buffer.from(joined(this.#roots), 'latin1');
  }
}

/** Root over adjacent subtrees, the largest first. */
export function joined(roots: readonly Digest[]): Digest {
  return roots.slice(0, -1).reduceRight((under, left) => nodeHash(left, under), roots.at(-1) ?? EMPTY_ROOT);
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
  frontier: Frontier.empty(),
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
