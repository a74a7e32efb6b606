import { cosine, meanVector, type Passage } from './passage.js';

/** A label and the vectors of the texts that stand for it. */
export interface LabelVectors {
  readonly label: string;
  readonly prototypes: readonly Float32Array[];
}

interface Scored {
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
  return passages.map((passage) => {
    let best: Scored | null = null;
    for (const scored of score(passage)) if (best === null || scored.score > best.score) best = scored;
    return best === null || (minScore !== null && best.score < minScore) ? null : best.label;
  });
}

/** All labels of at least `threshold`, by score, then in label order. */
export function tag(
  passages: readonly Passage[],
  labels: readonly LabelVectors[],
  threshold: number,
): readonly (readonly string[])[] {
  const score = scorer(labels);
  return passages.map((passage) =>
    score(passage)
      .filter((s) => s.score >= threshold)
      .sort((a, b) => b.score - a.score) // a stable sort
      .map((s) => s.label),
  );
}

function scorer(labels: readonly LabelVectors[]): (passage: Passage) => readonly Scored[] {
  const means = labels.flatMap(({ label, prototypes }) => {
    const mean = meanVector(prototypes);
    return mean === null ? [] : [{ label, mean }];
  });
  return (passage) => means.map(({ label, mean }) => ({ label, score: cosine(passage.vector, mean) }));
}
