import { MAX_SKIP, queryError, type Retrieval } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { textValue, wholeNumber } from './constants.js';

/** Which of the permitted passages, best first, are the answer, now that its arguments have values. */
export interface PageValues {
  readonly topK: number;
  readonly skip: number;
  readonly minScore: number | null;
  /** Whether each document counts with its best passage alone. */
  readonly ofDocuments: boolean;
  /** From 0 to 1; null where the order is that of the scores. */
  readonly diversity: number | null;
}

/** @throws QueryError E0511 */
export function pageValues({ topK, page, facet }: Retrieval, input: RuntimeInput): PageValues {
  const { per, skip, minScore, diversity } = page;
  return {
    topK: countIn('top_k', wholeNumber(textValue(topK, input)), 1, facet.maxTopK),
    skip: skip === null ? 0 : countIn('skip', wholeNumber(textValue(skip, input)), 0, MAX_SKIP),
    minScore: minScore === null ? null : numberIn('min_score', textValue(minScore, input)),
    ofDocuments: per === 'document',
    diversity: diversity === null ? null : shareIn('diversity', textValue(diversity, input)),
  };
}

function countIn(name: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  const detail = `\`${name}\` is a whole number from ${least} to ${most}`;
  throw queryError('typeMismatch', { detail, hint: null });
}

function numberIn(name: string, text: string | null): number {
  const value = text === null || text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw queryError('typeMismatch', { detail: `\`${name}\` is a number`, hint: null });
}

function shareIn(name: string, text: string | null): number {
  const value = numberIn(name, text);
  if (value >= 0 && value <= 1) return value;
  throw queryError('typeMismatch', { detail: `\`${name}\` is a number from 0 to 1`, hint: null });
}

/** A score as answers show it. */
export function shownScore(score: number): number {
  return Number(score.toFixed(6));
}

/** Those of `passages`, best first, whose score is not below what the page asks for: as it is shown. */
export function goodEnough<P extends { readonly score: number }>(
  passages: readonly P[],
  { minScore }: PageValues,
): readonly P[] {
  return minScore === null ? passages : passages.filter((p) => shownScore(p.score) >= minScore);
}
