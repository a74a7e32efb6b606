import { TERM_SPACE, type TermCounts } from './terms.js';

export const K1 = 1.2;
export const B = 0.75;

/**
 * Average number of characters of English text per term that is not a stop word, measured on the benchmark's corpora.
 */
const CHARS_PER_TERM = 8;
/** Typical fill ratio of a chunk; chunks end at paragraphs, so most are shorter than allowed. */
const USUAL_FILL = 0.75;

/**
 * Average document length that BM25 assumes for a store without documents.
 *
 * @param maxChars the facet's chunk size
 */
export function averageLength(maxChars: number): number {
  return Math.max(1, Math.round((maxChars * USUAL_FILL) / CHARS_PER_TERM));
}

/** Number of rounding steps per doubling of the length; smaller differences hardly affect rankings. */
const STEPS = 2;

/**
 * Average document length for a store whose first passages have `lengths` terms: their mean, rounded to a step. A
 * store's average never changes, so later documents do not shift the scores of others; and because steps are coarse,
 * it reveals little about the first documents (decision 75).
 */
export function measuredLength(lengths: readonly number[], maxChars: number): number {
  const sum = lengths.reduce((all, length) => all + length, 0);
  if (sum === 0) return averageLength(maxChars);
  return 2 ** (Math.round(STEPS * Math.log2(sum / lengths.length)) / STEPS);
}

/**
 * BM25 weights of a chunk as `sparsevec` text: term frequencies without IDF. The inner product with a `lexicalQuery`
 * vector is the score.
 */
export function lexicalWeights(terms: TermCounts, average: number): string {
  const norm = K1 * (1 - B + (B * terms.length) / average);
  return sparseText(terms.ids, (i) => {
    const count = terms.counts[i] ?? 0;
    return (count * (K1 + 1)) / (count + norm);
  });
}

/** Document frequencies, counted only among the rows that this caller may see. */
export interface PermittedStatistics {
  readonly documents: number;
  documentFrequency(termId: number): number;
}

export interface LexicalQuery {
  /** `sparsevec(1048576)` text; `-(lex <#> vector)` is the score. */
  readonly vector: string;
  /** Ids of the query terms that occur in permitted rows, ascending. A row with none of them scores 0. */
  readonly termIds: readonly number[];
  /** Inverse document frequency of each term among the permitted rows. */
  readonly rarities: readonly number[];
  /** Maximum contribution of each term to a score. */
  readonly mosts: readonly number[];
}

/**
 * BM25 weights of a query, based on `statistics`.
 *
 * @returns null if none of `terms` occurs in a permitted row
 */
export function lexicalQuery(terms: TermCounts, statistics: PermittedStatistics): LexicalQuery | null {
  const found = terms.ids
    .map((id, i) => ({ id, count: terms.counts[i] ?? 0, frequency: statistics.documentFrequency(id) }))
    .filter((t) => t.frequency > 0);
  if (found.length === 0) return null;
  const termIds = found.map((t) => t.id);
  const rarities = found.map((t) => inverseFrequency(statistics.documents, t.frequency));
  const weights = found.map((t, i) => t.count * (rarities[i] ?? 0));
  const vector = sparseText(termIds, (i) => weights[i] ?? 0);
  return { vector, termIds, rarities, mosts: weights.map((weight) => weight * (K1 + 1)) };
}

/** Inverse document frequency; positive even for a term that is in every row. */
export function inverseFrequency(documents: number, frequency: number): number {
  return Math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5));
}

function sparseText(ids: readonly number[], weight: (i: number) => number): string {
  return `{${ids.map((id, i) => `${id}:${Number(weight(i).toPrecision(7))}`).join(',')}}/${TERM_SPACE}`;
}
