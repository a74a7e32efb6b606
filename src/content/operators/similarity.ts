import { cosine, type Passage } from './passage.js';

/** Cosine to `reference`, in [-1, 1]. */
export function similarity(passages: readonly Passage[], reference: Float32Array): readonly number[] {
  return passages.map((p) => cosine(p.vector, reference));
}
