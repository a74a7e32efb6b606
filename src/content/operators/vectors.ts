/**
 * Vectors of one width in contiguous memory, with precomputed squared norms. Every sum is sequential in f64, so that
 * results do not depend on how many vectors are compared at once: several sums are interleaved, but none is split.
 */
export class Vectors {
  readonly count: number;
  readonly width: number;
  readonly #flat: Float64Array;
  readonly #squares: Float64Array;

  constructor(vectors: readonly Float32Array[]) {
    this.count = vectors.length;
    this.width = vectors[0]?.length ?? 0;
    this.#flat = new Float64Array(this.count * this.width);
    for (const [i, vector] of vectors.entries())
      this.#flat.set(vector.subarray(0, this.width), i * this.width);
    this.#squares = Float64Array.from(vectors.map(squaresOf));
  }

  /** Writes to `out` the cosine of vector `i` to each vector from `from` on, at that vector's index. */
  cosines(i: number, from: number, out: Float64Array): void {
    const start = i * this.width;
    const one = this.#flat.subarray(start, start + this.width);
    this.#cosinesTo(one, this.#squares[i] ?? 0, from, out);
  }

  cosinesTo(vector: Float32Array): Float64Array {
    const out = new Float64Array(this.count);
    this.#cosinesTo(new Float64Array(vector), squaresOf(vector), 0, out);
    return out;
  }

  #cosinesTo(one: Float64Array, squares: number, from: number, out: Float64Array): void {
    dots(one, this.#flat, from, this.count, out);
    for (let j = from; j < this.count; j++) {
      const other = this.#squares[j] ?? 0;
      const cosine = (out[j] ?? 0) / Math.sqrt(squares * other);
      out[j] = squares === 0 || other === 0 ? 0 : round6(Math.max(-1, Math.min(1, cosine)));
    }
  }
}

function squaresOf(vector: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) {
    const x = vector[i] ?? 0;
    sum += x * x;
  }
  return sum;
}

/**
 * Writes to `out` the inner products of `one` and the rows of `flat` from `from` up to but excluding `to`. Four sums
 * are interleaved, so that the processor can overlap additions.
 */
function dots(one: Float64Array, flat: Float64Array, from: number, to: number, out: Float64Array): void {
  const width = one.length;
  let row = from;
  for (; row + 4 <= to; row += 4) {
    const [a, b, c, d] = [row * width, (row + 1) * width, (row + 2) * width, (row + 3) * width];
    let sumA = 0;
    let sumB = 0;
    let sumC = 0;
    let sumD = 0;
    for (let i = 0; i < width; i++) {
      const x = one[i] ?? 0;
      sumA += x * (flat[a + i] ?? 0);
      sumB += x * (flat[b + i] ?? 0);
      sumC += x * (flat[c + i] ?? 0);
      sumD += x * (flat[d + i] ?? 0);
    }
    out[row] = sumA;
    out[row + 1] = sumB;
    out[row + 2] = sumC;
    out[row + 3] = sumD;
  }
  for (; row < to; row++) {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += (one[i] ?? 0) * (flat[row * width + i] ?? 0);
    out[row] = sum;
  }
}

/** A passage as seen by an operator; the caller is authorized to read it. */
export interface OperatorPassage {
  readonly chunkId: string;
  readonly vector: Float32Array;
}

/** Compares by code points, as the "C" collation does. */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Sort key of a code unit; surrogates sort above all others, since they encode the highest code points. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}

/**
 * Runs `work` over `items` sorted by chunk id, and returns the results in the original order of `items`, so that no
 * result depends on the order of passages.
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

/** Rounds to 6 decimals; never returns -0. */
export function round6(value: number): number {
  return Math.round(value * PLACES) / PLACES + 0;
}

/** Mean of unit vectors; null for an empty list. */
export function meanVector(vectors: readonly Float32Array[]): Float32Array | null {
  const [first] = vectors;
  if (first === undefined) return null;
  const sums = new Float64Array(first.length);
  for (const vector of vectors)
    for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) + (vector[i] ?? 0);
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) / vectors.length;
  return new Float32Array(sums);
}
