import { hash } from 'node:crypto';

/**
 * RFC 6962 Merkle trees for verifiers, independent of the writer's code. A tree with n leaves is split at the largest
 * power of two below n.
 */

/** Hash bytes as latin1 characters, because allocating a buffer costs more than hashing. */
type Hash = string;

const HASH_BYTES = 32;
const node = Buffer.alloc(1 + 2 * HASH_BYTES);
node[0] = 0x01;

function nodeHash(left: Hash, right: Hash): Hash {
  node.write(left, 1, HASH_BYTES, 'latin1');
  node.write(right, 1 + HASH_BYTES, HASH_BYTES, 'latin1');
  return hash('sha256', node, 'binary');
}

/** Leaf hash. @param input a zero byte and the record */
export function leafOf(input: Uint8Array): Hash {
  return hash('sha256', input, 'binary');
}

/** Computes the root of leaves added one by one, in O(log n) memory. */
export class RunningRoot {
  readonly #leaves: number[] = [];
  readonly #roots: Hash[] = [];

  /** @param leaf result of `leafOf`, or its bytes */
  add(leaf: Hash | Uint8Array): void {
    this.addComplete(1, leaf);
  }

  /** Adds a complete subtree. @param leaves a power of two that divides the number of leaves before it */
  addComplete(leaves: number, subtree: Hash | Uint8Array): void {
    let [count, root] = [
      leaves,
      typeof subtree === 'string' ? subtree : Buffer.from(subtree).toString('latin1'),
    ];
    while (this.#leaves.at(-1) === count) {
      this.#leaves.pop();
      root = nodeHash(this.#roots.pop() ?? '', root);
      count *= 2;
    }
    this.#leaves.push(count);
    this.#roots.push(root);
  }

  copy(): RunningRoot {
    const copy = new RunningRoot();
    copy.#leaves.push(...this.#leaves);
    copy.#roots.push(...this.#roots);
    return copy;
  }

  root(): Buffer {
    const right = this.#roots.at(-1) ?? leafOf(Buffer.alloc(0));
    const root = this.#roots.slice(0, -1).reduceRight((under, left) => nodeHash(left, under), right);
    return Buffer.from(root, 'latin1');
  }
}

function hashChildren(left: Buffer, right: Buffer): Buffer {
  return Buffer.from(nodeHash(left.toString('latin1'), right.toString('latin1')), 'latin1');
}

/**
 * Returns the complete subtrees of a tree with `size` leaves, largest first.
 *
 * @throws TypeError if the number of roots does not match
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

/** Leaves in [start, end), such as those below a node on an inclusion path. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** Leaves below each sibling on the path from leaf `index` to the root, lowest first (PATH in RFC 6962). */
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

/** Computes the root from an inclusion path (RFC 9162, 2.1.3.2); null if the path has the wrong length. */
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
