import { cosine, inIdOrder, type Passage, round6 } from './passage.js';

/**
 * Places by cosine to `query`, 1 the best. With `lambda` below 1, each place goes to the passage that is near
 * the query and far from those placed before (maximal marginal relevance). Equals go by chunk id.
 */
export function rank(passages: readonly Passage[], query: Float32Array, lambda: number): readonly number[] {
  return inIdOrder(passages, (sorted) => {
    const near = sorted.map((p) => cosine(p.vector, query));
    return lambda >= 1 ? placesOf(near) : marginalPlaces(sorted, near, lambda);
  });
}

function placesOf(scores: readonly number[]): readonly number[] {
  const order = scores.map((_, i) => i).sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b);
  const places = new Array<number>(scores.length);
  for (const [place, i] of order.entries()) places[i] = place + 1;
  return places;
}

function marginalPlaces(
  sorted: readonly Passage[],
  near: readonly number[],
  lambda: number,
): readonly number[] {
  const places = new Array<number>(sorted.length).fill(0);
  /** Cosine to the nearest passage placed so far; null before there is one. */
  const nearest = new Array<number | null>(sorted.length).fill(null);
  for (let place = 1; place <= sorted.length; place++) {
    const chosen = bestOf(places, (i) => round6(lambda * (near[i] ?? 0) - (1 - lambda) * (nearest[i] ?? 0)));
    places[chosen] = place;
    const vector = sorted[chosen]?.vector ?? new Float32Array();
    for (const [i, other] of sorted.entries()) {
      if (places[i] === 0) nearest[i] = Math.max(nearest[i] ?? -1, cosine(vector, other.vector));
    }
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
