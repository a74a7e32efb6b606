import { meanVector, type Passage } from './passage.js';
import { Vectors } from './vectors.js';

/** A label and the vectors of the texts that stand for it. */
export interface LabelVectors {
  readonly label: string;
  readonly prototypes: readonly Float32Array[];
}

export interface Scored {
  readonly label: string;
  readonly score: number;
}

/** The label of the highest cosine to the mean of its prototypes; the first of equals; null below `minScore`. */
export function classify(
  passages: readonly Passage[],
  labels: readonly LabelVectors[],
  minScore: number | null,
): readonly (string | null)[] {
  const score = scorer(labels);
  return passages.map((passage) => best(score(passage), minScore)?.label ?? null);
}

/** The highest score; the first of equals; null below `minScore`. */
export function best(scores: readonly Scored[], minScore: number | null): Scored | null {
  let found: Scored | null = null;
  for (const scored of scores) if (found === null || scored.score > found.score) found = scored;
  return found === null || (minScore !== null && found.score < minScore) ? null : found;
}

/** All labels of at least `threshold`, by score, then in label order. */
export function tag(
  passages: readonly Passage[],
  labels: readonly LabelVectors[],
  threshold: number,
): readonly (readonly string[])[] {
  const score = scorer(labels);
  return passages.map((passage) => atLeast(score(passage), threshold).map((s) => s.label));
}

/** All scores of at least `threshold`, the highest first, then in label order. */
export function atLeast(scores: readonly Scored[], threshold: number): readonly Scored[] {
  return scores.filter((s) => s.score >= threshold).sort((a, b) => b.score - a.score); // a stable sort
}

/** Of each label, in their order, the cosine of a passage's vector to the mean of its prototypes. */
export function scorer(
  labels: readonly LabelVectors[],
): (passage: Pick<Passage, 'vector'>) => readonly Scored[] {
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
