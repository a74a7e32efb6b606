import { inIdOrder, type OperatorPassage, round6 } from './passage.js';
import { Vectors } from './vectors.js';

/** Mean cosine distance to the `k` nearest others; null where there are no `k` others. */
export function outlier(passages: readonly OperatorPassage[], k: number): readonly (number | null)[] {
  if (passages.length <= k) return passages.map(() => null);
  return inIdOrder(passages, (sorted) => {
    const vectors = new Vectors(sorted.map((p) => p.vector));
    const nearest = sorted.map(() => new Nearest(k));
    const cosines = new Float64Array(vectors.count);
    for (const [i, own] of nearest.entries()) {
      vectors.cosines(i, i + 1, cosines);
      for (let j = i + 1; j < vectors.count; j++) {
        const distance = 1 - (cosines[j] ?? 0);
        own.add(distance);
        nearest[j]?.add(distance);
      }
    }
    return nearest.map((own) => round6(own.sum() / k));
  });
}

/** The smallest `k` of many distances, ascending. */
class Nearest {
  readonly #smallest: Float64Array;

  constructor(k: number) {
    this.#smallest = new Float64Array(k).fill(Number.POSITIVE_INFINITY);
  }

  add(distance: number): void {
    const smallest = this.#smallest;
    let at = smallest.length - 1;
    if (distance >= (smallest[at] ?? 0)) return;
    for (; at > 0 && (smallest[at - 1] ?? 0) > distance; at--) smallest[at] = smallest[at - 1] ?? 0;
    smallest[at] = distance;
  }

  sum(): number {
    return this.#smallest.reduce((sum, distance) => sum + distance, 0);
  }
}
