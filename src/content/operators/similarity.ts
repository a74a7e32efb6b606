import { inIdOrder, meanVector, type OperatorPassage, round6, Vectors } from './vectors.js';

/** Computes the cosine similarity of each passage to `reference`, in [-1, 1]. */
export function similarity(passages: readonly OperatorPassage[], reference: Float32Array): readonly number[] {
  return [...new Vectors(passages.map((p) => p.vector)).cosinesTo(reference)];
}

/**
 * Ranks passages by cosine to `query`, starting at 1. With `lambda` below 1, each rank goes to the passage that best
 * combines closeness to the query and distance from those already ranked (maximal marginal relevance). Ties are broken
 * by chunk id.
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
  /** Cosine to the nearest passage ranked so far; null while none is ranked. */
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

/** Mean cosine distance of each passage to its `k` nearest others; null if there are fewer than `k` others. */
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

/** Keeps the `k` smallest of many distances, in ascending order. */
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

/** A label with the vectors of its texts. */
export interface LabelVectors {
  readonly label: string;
  readonly prototypes: readonly Float32Array[];
}

export interface LabelScore {
  readonly label: string;
  readonly score: number;
}

/**
 * Assigns each passage the label with the highest cosine to the mean of the label's prototypes, or the first such label
 * in a tie; null if that cosine is below `minScore`.
 */
export function classify(
  passages: readonly OperatorPassage[],
  labels: readonly LabelVectors[],
  minScore: number | null,
): readonly (string | null)[] {
  const score = scorer(labels);
  return passages.map((passage) => best(score(passage), minScore)?.label ?? null);
}

/** Returns the highest score, or the first of equal ones; null if it is below `minScore`. */
export function best(scores: readonly LabelScore[], minScore: number | null): LabelScore | null {
  let found: LabelScore | null = null;
  for (const scored of scores) if (found === null || scored.score > found.score) found = scored;
  return found === null || (minScore !== null && found.score < minScore) ? null : found;
}

/** Assigns each passage all labels that score at least `threshold`, highest score first, then in label order. */
export function tag(
  passages: readonly OperatorPassage[],
  labels: readonly LabelVectors[],
  threshold: number,
): readonly (readonly string[])[] {
  const score = scorer(labels);
  return passages.map((passage) => atLeast(score(passage), threshold).map((s) => s.label));
}

/** Returns all scores of at least `threshold`, highest first, then in label order. */
export function atLeast(scores: readonly LabelScore[], threshold: number): readonly LabelScore[] {
  return scores.filter((s) => s.score >= threshold).sort((a, b) => b.score - a.score); // stable: ties keep label order
}

/** Returns a function that computes the cosine of a passage to the mean of each label's prototypes, in label order. */
export function scorer(
  labels: readonly LabelVectors[],
): (passage: Pick<OperatorPassage, 'vector'>) => readonly LabelScore[] {
  const means = labels.flatMap(({ label, prototypes }) => {
    const mean = meanVector(prototypes);
    return mean === null ? [] : [{ label, mean }];
  });
  const vectors = new Vectors(means.map(({ mean }) => mean));
  return (passage) => {
    const cosines = vectors.cosinesTo(passage.vector);
    return means.map(({ label }, i) => ({ label, score: cosines[i] ?? 0 }));
  };
}

export interface Duplicate {
  /** Group number, starting at 1 and ordered by the lowest chunk id in each group. */
  readonly group: number;
  readonly is_duplicate: boolean;
  /** Chunk id of the group's representative, which is the lowest in the group; null for the representative itself. */
  readonly of: string | null;
}

/** Groups passages that are linked, directly or through others, by cosines of at least `threshold`. */
export function dedup(passages: readonly OperatorPassage[], threshold: number): readonly Duplicate[] {
  return inIdOrder(passages, (sorted) => {
    const parents = sorted.map((_, i) => i);
    const vectors = new Vectors(sorted.map((p) => p.vector));
    const cosines = new Float64Array(vectors.count);
    for (let i = 0; i < vectors.count; i++) {
      vectors.cosines(i, i + 1, cosines);
      for (let j = i + 1; j < vectors.count; j++) if ((cosines[j] ?? 0) >= threshold) join(parents, i, j);
    }
    return groupsOf(sorted, parents);
  });
}

/** Merges the groups of `i` and `j`. INVARIANT: the root of a group is its lowest index. */
function join(parents: number[], i: number, j: number): void {
  const [a, b] = [rootOf(parents, i), rootOf(parents, j)];
  parents[Math.max(a, b)] = Math.min(a, b);
}

function rootOf(parents: readonly number[], i: number): number {
  let at = i;
  for (let up = parents[at] ?? at; up !== at; up = parents[at] ?? at) at = up;
  return at;
}

function groupsOf(sorted: readonly OperatorPassage[], parents: readonly number[]): readonly Duplicate[] {
  const numbers = new Map<number, number>();
  return sorted.map((_, i) => {
    const root = rootOf(parents, i);
    const group = numbers.get(root) ?? numbers.size + 1;
    numbers.set(root, group);
    return root === i
      ? { group, is_duplicate: false, of: null }
      : { group, is_duplicate: true, of: sorted[root]?.chunkId ?? null };
  });
}
