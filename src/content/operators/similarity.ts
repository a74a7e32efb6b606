import type { OperatorPassage } from './passage.js';
import { Vectors } from './vectors.js';

/** Cosine to `reference`, in [-1, 1]. */
export function similarity(passages: readonly OperatorPassage[], reference: Float32Array): readonly number[] {
  return [...new Vectors(passages.map((p) => p.vector)).cosinesTo(reference)];
}
