import { MAX_SKIP, queryError, type Retrieval } from 'osl-compiler';
import type { StoredPassage } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { textValue, wholeNumber } from './constants.js';

/** Values of the page arguments. */
export interface PageValues {
  readonly topK: number;
  readonly skip: number;
  readonly minScore: number | null;
  readonly ofDocuments: boolean;
  /** Weight of diversity, from 0 to 1; if null, passages are sorted by score only. */
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

/** A score as shown in answers, with six decimals. */
export function shownScore(score: number): number {
  return Number(score.toFixed(6));
}

/** Drops passages whose shown score is below the minimum. */
export function aboveMinScore<P extends { readonly score: number }>(
  passages: readonly P[],
  { minScore }: PageValues,
): readonly P[] {
  return minScore === null ? passages : passages.filter((p) => shownScore(p.score) >= minScore);
}

export interface ScoredPassage extends StoredPassage {
  readonly why: ScoreExplanation;
}

type ScoreExplanation =
  | LexicalScore
  | { readonly by: 'dense' }
  | { readonly by: 'hybrid'; readonly fuse: 'rank' | 'score'; readonly legs: readonly LegShare[] }
  /** `found` is the passage before reranking, with its rank starting at 1. */
  | {
      readonly by: 'reranker';
      readonly reranker: string;
      readonly found: { readonly passage: ScoredPassage; readonly rank: number };
    };

export interface LexicalScore {
  readonly by: 'lexical';
  readonly words: readonly WeighedTerm[];
  /** The sparse vector stored for this passage; null if not requested. */
  readonly weights: string | null;
}

interface WeighedTerm {
  readonly term: number;
  /** The word's inverse document frequency among permitted passages. */
  readonly rarity: number;
}

export interface LegShare {
  readonly leg: 'lexical' | 'dense';
  readonly weight: number;
  /** The passage that this leg found, or another of the same document; null if the leg found none. */
  readonly found: { readonly passage: ScoredPassage; readonly rank: number } | null;
  readonly share: number;
}
