import { createHash } from 'node:crypto';

/**
 * RFC 6962 trees for those who check the log: nothing here is the writer's. A tree of n leaves splits at the
 * largest power of two below n.
 */

/** Root of leaves that come one by one, in O(log n) memory. */
export class RunningRoot {
  readonly #complete: { leaves: number; root: Buffer }[] = [];

  add(leaf: Buffer): void {
    this.addComplete(1, leaf);
  }

  /** A whole subtree of so many leaves, a power of two, where one belongs. */
  addComplete(leaves: number, root: Uint8Array): void {
    this.#complete.push({ leaves, root: Buffer.from(root) });
    for (;;) {
      const right = this.#complete.at(-1);
      const left = this.#complete.at(-2);
      if (!left || !right || left.leaves !== right.leaves) return;
      this.#complete.splice(-2, 2, { leaves: 2 * left.leaves, root: hashChildren(left.root, right.root) });
    }
  }

  copy(): RunningRoot {
    const copy = new RunningRoot();
    copy.#complete.push(...this.#complete);
    return copy;
  }

  root(): Buffer {
    const right = this.#complete.at(-1)?.root ?? createHash('sha256').digest();
    return this.#complete.slice(0, -1).reduceRight((root, left) => hashChildren(left.root, root), right);
  }
}

export function hashChildren(left: Buffer, right: Buffer): Buffer {
  return createHash('sha256').update('\x01').update(left).update(right).digest();
}

/**
 * The complete subtrees of `size` leaves, largest first, with their roots.
 *
 * @throws TypeError where there are more or fewer roots
 */
export function subtreesOf(
  size: number,
  roots: readonly Buffer[],
): readonly (LeafRange & { readonly root: Buffer })[] {
  const subtrees: (LeafRange & { readonly root: Buffer })[] = [];
  let start = 0;
  for (let power = 2 ** 52; power >= 1; power /= 2) {
    if (Math.floor(size / power) % 2 === 0) continue;
    const root = roots[subtrees.length];
    if (root === undefined) throw new TypeError(`a tree of ${size} leaves has more roots`);
    subtrees.push({ start, end: start + power, root });
    start += power;
  }
  if (subtrees.length !== roots.length) throw new TypeError(`a tree of ${size} leaves has fewer roots`);
  return subtrees;
}

/** Leaves [start, end) under one node of an inclusion path. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** The siblings on the way from leaf `index` up to the root of `size` leaves, lowest first (PATH in RFC 6962). */
export function pathRanges(index: number, size: number): LeafRange[] {
  const ranges: LeafRange[] = [];
  let start = 0;
  let end = size;
  while (end - start > 1) {
    const middle = start + splitPoint(end - start);
    if (index < middle) {
      ranges.unshift({ start: middle, end });
      end = middle;
    } else {
      ranges.unshift({ start, end: middle });
      start = middle;
    }
  }
  return ranges;
}

function splitPoint(leaves: number): number {
  let power = 1;
  while (power * 2 < leaves) power *= 2;
  return power;
}

/** Root that an inclusion path leads to (RFC 9162, 2.1.3.2), or null if its length does not fit. */
export function rootFromPath(
  index: number,
  size: number,
  leaf: Buffer,
  path: readonly Buffer[],
): Buffer | null {
  let node = index;
  let last = size - 1;
  let root = leaf;
  if (index < 0 || index >= size) return null;
  for (const sibling of path) {
    if (last === 0) return null;
    if (node % 2 === 1 || node === last) {
      root = hashChildren(sibling, root);
      while (node % 2 === 0 && node !== 0) {
        node /= 2;
        last = Math.floor(last / 2);
      }
    } else {
      root = hashChildren(root, sibling);
    }
    node = Math.floor(node / 2);
    last = Math.floor(last / 2);
  }
  return last === 0 ? root : null;
}
