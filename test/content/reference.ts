/** Plain definitions that tests and benchmarks compare the content layer with. */
import { fromSql } from 'pgvector';
import { round6 } from '../../src/content/operators/vectors.js';

/** Cosine, summed sequentially in f64 and rounded, in [-1, 1]; 0 if either vector is all zeros. */
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

/** The part of `text` between two code point offsets. */
export function sliceCodePoints(text: string, start: number, end: number): string {
  return [...text].slice(start, end).join('');
}

/** Parses the text of a `vector` or `halfvec`. */
export function parseVector(text: string): Float32Array {
  return Float32Array.from(fromSql(text));
}
