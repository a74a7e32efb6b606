import { type Digest, digest, GENESIS, HASH_BYTES, putDigest } from './format.js';

/** Root of the tree without leaves (RFC 6962: the hash of nothing). */
const EMPTY_ROOT = digest(Buffer.alloc(0));

const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 0x01;

function nodeHash(left: Digest, right: Digest): Digest {
  putDigest(node, 1, left);
  putDigest(node, 1 + HASH_BYTES, right);
  return digest(node);
}

/**
 * The right edge of an RFC 6962 tree: one root per complete subtree, largest first, as the binary digits of the
 * size say. Enough to add leaves and to know the root; O(log n) memory.
 */
export class Frontier {
  #roots: Digest[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The roots of its complete subtrees, largest first. */
  get roots(): readonly Digest[] {
    return this.#roots;
  }

  /** The frontier that has these roots. @throws RangeError where a tree of that size has more or fewer */
  static of(size: number, roots: readonly Digest[]): Frontier {
    const digits = [...size.toString(2)].filter((digit) => digit === '1').length;
    if (roots.length !== digits) throw new RangeError(`a tree of ${size} leaves has ${digits} roots`);
    const frontier = new Frontier();
    frontier.#roots = [...roots];
    frontier.#size = size;
    return frontier;
  }

  /** One that grows on its own from here. */
  copy(): Frontier {
    const copy = new Frontier();
    copy.#roots = [...this.#roots];
    copy.#size = this.#size;
    return copy;
  }

  push(leaf: Digest): void {
    let root = leaf;
    for (let digits = this.#size; digits % 2 === 1; digits = Math.floor(digits / 2)) {
      // The lowest digits that are set name subtrees, so one is there.
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

/** A place between two segments, with all that the records before it come to. */
export interface LogBase {
  /** Number of the segment before, 0 if none. */
  readonly segment: number;
  readonly epoch: number;
  readonly seq: number;
  readonly chain: Buffer;
  readonly frontier: Frontier;
}

/** The place before the first record. */
export const BEGINNING: LogBase = Object.freeze({
  segment: 0,
  epoch: 0,
  seq: 0,
  chain: GENESIS,
  frontier: new Frontier(),
});

/** Checkpoints that are signed already. */
export interface SignedState {
  /** Length of the checkpoints that stay, in bytes. */
  readonly end: number;
  /** Tree size of the last checkpoint there, -1 if none. */
  readonly lasting: number;
  /** Tree size of the newest one anywhere, -1 if none. */
  readonly newest: number;
}
