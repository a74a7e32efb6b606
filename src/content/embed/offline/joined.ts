/**
 * A text's n-grams with its meaning behind them, in the same measure: whole numbers, so that sums of their products
 * are exact in whatever order.
 *
 * @param meaning of unit norm, or zeros
 */
export function joined(ngrams: Float32Array, meaning: Float32Array, share: number): Float32Array {
  const scale = share * Math.hypot(...ngrams);
  const vector = new Float32Array(ngrams.length + meaning.length);
  vector.set(ngrams);
  // `+ 0` turns -0 into 0.
  for (const [i, x] of meaning.entries()) vector[ngrams.length + i] = Math.round(x * scale) + 0;
  return vector;
}
