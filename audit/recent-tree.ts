import type { Digest } from './format.js';
import { Frontier, joined } from './frontier.js';

/** Complete subtrees of one height, as roots: the first is subtree number `first`. */
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
  /** By height. */
  #levels: TreeLevel[] = [];
  /** Roots of the complete subtrees before the first kept leaf, by height and number. */
  #before: ReadonlyMap<string, Digest>;
  #first: number;

  /** @param kept number of leaves that are kept at least, and twice at most; a power of two */
  constructor({ size, roots }: Frontier, kept = 8_192) {
    super(size, roots);
    this.#kept = kept;
    this.#first = size;
    this.#before = new Map(
      coverOf({ start: 0, end: size }).map(({ height, index }, i) => [keyOf(height, index), roots[i] ?? '']),
    );
  }

  /** Siblings on the path from leaf `index` to the root of the first `size` leaves; null if it is no longer kept. */
  pathOf(index: number, size: number): readonly Buffer[] | null {
    if (index < this.#first || index >= size || size > this.size) return null;
    return siblingsOf(index, size).map((range) => this.#rootOf(range));
  }

  /** Hash of a leaf; null if it is no longer kept. */
  leaf(index: number): Buffer | null {
    return index < this.#first || index >= this.size ? null : this.#rootOf({ start: index, end: index + 1 });
  }

  /** Root of the first `size` leaves, of which the last must still be kept. */
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

  #rootOf(range: LeafRange): Buffer {
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
interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** Leaves below each sibling on the path from a leaf to the root, lowest first (RFC 6962, 2.1.1). */
function siblingsOf(index: number, size: number): readonly LeafRange[] {
  const siblings: LeafRange[] = [];
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

/** Complete subtrees that cover a range of leaves of the tree, the largest first. */
function coverOf({ start, end }: LeafRange): readonly { readonly height: number; readonly index: number }[] {
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
