import { cosine, inIdOrder, type Passage, round6 } from './passage.js';

/** Mean cosine distance to the `k` nearest others; null where there are no `k` others. */
export function outlier(passages: readonly Passage[], k: number): readonly (number | null)[] {
  if (passages.length <= k) return passages.map(() => null);
  return inIdOrder(passages, (sorted) =>
    sorted.map((passage, i) => {
      const distances = sorted
        .filter((_, j) => j !== i)
        .map((other) => 1 - cosine(passage.vector, other.vector));
      const nearest = distances.sort((a, b) => a - b).slice(0, k);
      return round6(nearest.reduce((sum, d) => sum + d, 0) / k);
    }),
  );
}
