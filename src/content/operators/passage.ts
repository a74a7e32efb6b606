/** Fields of an authorised, trimmed passage that an operator sees. */
export interface OperatorPassage {
  readonly chunkId: string;
  /** The store's vector of the chunk. */
  readonly vector: Float32Array;
}

/** Order of code points, which is that of the "C" collation. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Halves of pairs stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * Runs `work` over `items` in the order of their chunk ids, and gives its results back in the order of `items`:
 * so that no result depends on the order in which passages came.
 */
export function inIdOrder<P extends { readonly chunkId: string }, R>(
  items: readonly P[],
  work: (sorted: readonly P[]) => readonly R[],
): readonly R[] {
  const order = items.map((_, i) => i).sort((a, b) => compareIds(idAt(items, a), idAt(items, b)) || a - b);
  const results = work(order.flatMap((i) => items.slice(i, i + 1)));
  const out: R[] = new Array(items.length);
  for (const [place, i] of order.entries()) {
    const result = results[place];
    if (result !== undefined) out[i] = result;
  }
  return out;
}

function idAt(items: readonly { readonly chunkId: string }[], i: number): string {
  return items[i]?.chunkId ?? '';
}

const PLACES = 1e6;

/** To 6 decimals; never -0. */
export function round6(value: number): number {
  return Math.round(value * PLACES) / PLACES + 0;
}

/** Sequential sum in f64; 0 where either vector is all 0. Rounded, in [-1, 1]. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let [dot, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  if (aa === 0 || bb === 0) return 0;
  return round6(Math.max(-1, Math.min(1, dot / Math.sqrt(aa * bb))));
}

/** The mean of unit vectors; null of none. */
export function meanVector(vectors: readonly Float32Array[]): Float32Array | null {
  const [first] = vectors;
  if (first === undefined) return null;
  const sums = new Float64Array(first.length);
  for (const vector of vectors)
    for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) + (vector[i] ?? 0);
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) / vectors.length;
  return new Float32Array(sums);
}
