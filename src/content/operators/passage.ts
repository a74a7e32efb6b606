/** Passage as an operator sees it; the caller is authorized to read it. */
export interface OperatorPassage {
  readonly chunkId: string;
  /** The store's vector of the chunk. */
  readonly vector: Float32Array;
}

/** Order by code points, as in the "C" collation. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates sort above all other code points. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * Runs `work` over `items` in the order of their chunk ids, and returns the results in the order of `items`, so that
 * no result depends on the order of passages.
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

/** Rounded to 6 decimals; never -0. */
export function round6(value: number): number {
  return Math.round(value * PLACES) / PLACES + 0;
}

/** Sequential sum in f64, rounded, in [-1, 1]; 0 if either vector is all 0. */
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

/** Mean of unit vectors; null if there are none. */
export function meanVector(vectors: readonly Float32Array[]): Float32Array | null {
  const [first] = vectors;
  if (first === undefined) return null;
  const sums = new Float64Array(first.length);
  for (const vector of vectors)
    for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) + (vector[i] ?? 0);
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) / vectors.length;
  return new Float32Array(sums);
}
