import { round6 } from './passage.js';

/**
 * Vectors of one width in one piece of memory, with what each cosine needs of them worked out once.
 *
 * Every sum is sequential in f64, as `cosine` makes it, so that the results are the same bits: several sums go on
 * side by side, and none is split.
 */
export class Vectors {
  readonly count: number;
  readonly width: number;
  readonly #flat: Float64Array;
  /** Of each vector, the sum of its squares. */
  readonly #squares: Float64Array;

  constructor(vectors: readonly Float32Array[]) {
    this.count = vectors.length;
    this.width = vectors[0]?.length ?? 0;
    this.#flat = new Float64Array(this.count * this.width);
    for (const [i, vector] of vectors.entries())
      this.#flat.set(vector.subarray(0, this.width), i * this.width);
    this.#squares = Float64Array.from(vectors.map(squaresOf));
  }

  /** The cosine of vector `i` to each vector from the one at `from` on, in their places of `out`. */
  cosines(i: number, from: number, out: Float64Array): void {
    const start = i * this.width;
    const one = this.#flat.subarray(start, start + this.width);
    this.#cosinesTo(one, this.#squares[i] ?? 0, from, out);
  }

  /** The cosine of `vector` to each vector. */
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

/** The inner product of `one` with each of the rows `from` … `to` of `flat`. One sum alone would wait for itself. */
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
