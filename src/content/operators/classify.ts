import { meanVector, type OperatorPassage } from './passage.js';
import { Vectors } from './vectors.js';

/** A label with the vectors of its texts. */
export interface LabelVectors {
  readonly label: string;
  readonly prototypes: readonly Float32Array[];
}

export interface LabelScore {
  readonly label: string;
  readonly score: number;
}

/** Label with the highest cosine to the mean of its prototypes; the first of equals; null below `minScore`. */
export function classify(
  passages: readonly OperatorPassage[],
  labels: readonly LabelVectors[],
  minScore: number | null,
): readonly (string | null)[] {
  const score = scorer(labels);
  return passages.map((passage) => best(score(passage), minScore)?.label ?? null);
}

/** Highest score; the first of equals; null below `minScore`. */
export function best(scores: readonly LabelScore[], minScore: number | null): LabelScore | null {
  let found: LabelScore | null = null;
  for (const scored of scores) if (found === null || scored.score > found.score) found = scored;
  return found === null || (minScore !== null && found.score < minScore) ? null : found;
}

/** All labels with at least `threshold`, by score, then in label order. */
export function tag(
  passages: readonly OperatorPassage[],
  labels: readonly LabelVectors[],
  threshold: number,
): readonly (readonly string[])[] {
  const score = scorer(labels);
  return passages.map((passage) => atLeast(score(passage), threshold).map((s) => s.label));
}

/** All scores of at least `threshold`, highest first, then in label order. */
export function atLeast(scores: readonly LabelScore[], threshold: number): readonly LabelScore[] {
  return scores.filter((s) => s.score >= threshold).sort((a, b) => b.score - a.score); // a stable sort
}

/** Cosine of a passage's vector to the mean of each label's prototypes, in label order. */
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
