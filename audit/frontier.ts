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

  /** Returns the frontier of `size` leaves. @throws RangeError if the number of roots does not fit `size` */
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

  /** Called for each subtree that a new leaf completes: leaves [index, index + 1) times 2^height. */
  protected completed(_height: number, _index: number, _root: Digest): void {}

  root(): Buffer {
    return Buffer.from(joined(this.#roots), 'latin1');
  }
}

/** Combines the roots of adjacent subtrees, largest first, into one root. */
function joined(roots: readonly Digest[]): Digest {
  return roots.slice(0, -1).reduceRight((under, left) => nodeHash(left, under), roots.at(-1) ?? EMPTY_ROOT);
}

/** Position between two segments, with the state of the log up to there. */
export interface LogBase {
  /** Number of the preceding segment; 0 before the first segment. */
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

/** State of the stored checkpoints. */
export interface SignedState {
  /** Length of the permanent checkpoint file in bytes. */
  readonly end: number;
  /** Tree size of the last permanent checkpoint; -1 if there is none. */
  readonly lasting: number;
  /** Tree size of the newest checkpoint; -1 if there is none. */
  readonly newest: number;
}

/** Roots of consecutive complete subtrees of one height; `first` is the number of the first subtree. */
interface TreeLevel {
  first: number;
  roots: Digest[];
}

/**
 * Merkle tree of the log that keeps its newest leaves, so that the inclusion of a recent record can be proved without
 * reading the log. Its memory does not grow with the log.
 */
export class RecentTree extends Frontier {
  readonly #kept: number;
  /** Kept subtrees; the index is the height. */
  #levels: TreeLevel[] = [];
  /** Roots of the complete subtrees before the first kept leaf, by height and number. */
  #before: ReadonlyMap<string, Digest>;
  #first: number;

  /** @param kept minimum number of leaves to keep, a power of two; up to twice as many are kept */
  constructor({ size, roots }: Frontier, kept = 8_192) {
    super(size, roots);
    this.#kept = kept;
    this.#first = size;
    this.#before = new Map(
      coverOf({ start: 0, end: size }).map(({ height, index }, i) => [keyOf(height, index), roots[i] ?? '']),
    );
  }

  /** Returns the inclusion path of leaf `index` in a tree of `size` leaves; null if the leaf is not kept. */
  pathOf(index: number, size: number): readonly Buffer[] | null {
    if (index < this.#first || index >= size || size > this.size) return null;
    return siblingsOf(index, size).map((range) => this.#rootOf(range));
  }

  /** Returns the hash of a leaf; null if the leaf is no longer kept. */
  leaf(index: number): Buffer | null {
    return index < this.#first || index >= this.size ? null : this.#rootOf({ start: index, end: index + 1 });
  }

  /** Returns the root of the first `size` leaves. The last of them must still be kept. */
  rootAt(size: number): Buffer {
    return this.#rootOf({ start: 0, end: size });
  }

  protected override completed(height: number, index: number, root: Digest): void {
    const level = this.#levels[height];
    if (level === undefined) this.#levels[height] = { first: index, roots: [root] };
    else level.roots.push(root);
    if (height === 0 && index - this.#first >= 2 * this.#kept) this.#forget(this.#first + this.#kept);
  }

  /** Drops the subtrees before leaf `first`, except the roots that later paths need. */
  #forget(first: number): void {
    const before = coverOf({ start: 0, end: first });
    this.#before = new Map(
      before.map(({ height, index }) => [keyOf(height, index), this.#subtree(height, index)]),
    );
    this.#first = first;
    this.#levels = this.#levels.map(({ first: from, roots }, height) => {
      const start = Math.max(from, Math.floor(first / 2 ** height));
      return { first: start, roots: roots.slice(start - from) };
    });
  }

  #rootOf(range: LeafSpan): Buffer {
    const roots = coverOf(range).map(({ height, index }) => this.#subtree(height, index));
    return Buffer.from(joined(roots), 'latin1');
  }

  #subtree(height: number, index: number): Digest {
    const level = this.#levels[height];
    const root = level === undefined || index < level.first ? undefined : level.roots[index - level.first];
    const found = root ?? this.#before.get(keyOf(height, index));
    if (found === undefined) throw new RangeError(`subtree ${index} of height ${height} is not kept`);
    return found;
  }
}

/** Leaves in [start, end). */
interface LeafSpan {
  readonly start: number;
  readonly end: number;
}

/** Leaves below each sibling on the path from a leaf to the root, lowest first (RFC 6962, 2.1.1). */
function siblingsOf(index: number, size: number): readonly LeafSpan[] {
  const siblings: LeafSpan[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    let half = 1;
    while (2 * half < end - start) half *= 2;
    const middle = start + half;
    const isLeft = index < middle;
    siblings.unshift(isLeft ? { start: middle, end } : { start, end: middle });
    if (isLeft) end = middle;
    else start = middle;
  }
  return siblings;
}

function keyOf(height: number, index: number): string {
  return `${height} ${index}`;
}

/** Returns the complete subtrees that cover a range of the tree's leaves, largest first. */
function coverOf({ start, end }: LeafSpan): readonly { readonly height: number; readonly index: number }[] {
  const found: { readonly height: number; readonly index: number }[] = [];
  let at = start;
  while (at < end) {
    let height = 0;
    while (at + 2 ** (height + 1) <= end) height += 1;
    found.push({ height, index: at / 2 ** height });
    at += 2 ** height;
  }
  return found;
}
