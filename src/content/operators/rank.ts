import { inIdOrder, type OperatorPassage, round6 } from './passage.js';
import { Vectors } from './vectors.js';

/** Cosine to `reference`, in [-1, 1]. */
export function similarity(passages: readonly OperatorPassage[], reference: Float32Array): readonly number[] {
  return [...new Vectors(passages.map((p) => p.vector)).cosinesTo(reference)];
}

/**
 * Ranks by cosine to `query`, from 1. With `lambda` below 1, each rank goes to the passage that is near the query
 * and far from those ranked before (maximal marginal relevance). Ties are broken by chunk id.
 */
export function rank(
  passages: readonly OperatorPassage[],
  query: Float32Array,
  lambda: number,
): readonly number[] {
  return inIdOrder(passages, (sorted) => {
    const vectors = new Vectors(sorted.map((p) => p.vector));
    const near = vectors.cosinesTo(query);
    return lambda >= 1 ? placesOf(near) : marginalPlaces(vectors, near, lambda);
  });
}

function placesOf(scores: Float64Array): readonly number[] {
  const order = Array.from(scores, (_, i) => i).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  const places = new Array<number>(scores.length);
  for (const [place, i] of order.entries()) places[i] = place + 1;
  return places;
}

function marginalPlaces(vectors: Vectors, near: Float64Array, lambda: number): readonly number[] {
  const { count } = vectors;
  const places = new Array<number>(count).fill(0);
  /** Cosine to the nearest passage ranked so far; null before there is one. */
  const nearest = new Array<number | null>(count).fill(null);
  const cosines = new Float64Array(count);
  for (let place = 1; place <= count; place++) {
    const chosen = bestOf(places, (i) => round6(lambda * (near[i] ?? 0) - (1 - lambda) * (nearest[i] ?? 0)));
    places[chosen] = place;
    vectors.cosines(chosen, 0, cosines);
    for (let i = 0; i < count; i++)
      if (places[i] === 0) nearest[i] = Math.max(nearest[i] ?? -1, cosines[i] ?? 0);
  }
  return places;
}

function bestOf(places: readonly number[], score: (i: number) => number): number {
  let [best, at] = [Number.NEGATIVE_INFINITY, -1];
  for (let i = 0; i < places.length; i++) {
    if (places[i] !== 0) continue;
    const s = score(i);
    if (s > best) [best, at] = [s, i];
  }
  return at;
}

/** Mean cosine distance to the `k` nearest others; null if there are fewer than `k` others. */
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

/** The `k` smallest of many distances, ascending. */
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
