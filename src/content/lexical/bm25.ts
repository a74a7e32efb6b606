import { TERM_SPACE, type TermCounts } from './terms.js';

export const K1 = 1.2;
export const B = 0.75;

/** Average characters of English text per term outside the stop list; measured on the benchmark's corpora. */
const CHARS_PER_TERM = 8;
/** Chunks end at paragraphs, so a typical one is not full. */
const USUAL_FILL = 0.75;

/**
 * Average document length for BM25 in a store without documents.
 *
 * @param maxChars the facet's chunk size
 */
export function averageLength(maxChars: number): number {
  return Math.max(1, Math.round((maxChars * USUAL_FILL) / CHARS_PER_TERM));
}

/** Steps per doubling of a length: rankings hardly depend on smaller differences. */
const STEPS = 2;

/**
 * The same for a store whose first passages have `lengths` terms: their mean, rounded to a step. It never changes,
 * so that later documents do not shift the scores of others; and since steps are coarse, it reveals little about the
 * first ones (decision 75).
 */
export function measuredLength(lengths: readonly number[], maxChars: number): number {
  const sum = lengths.reduce((all, length) => all + length, 0);
  if (sum === 0) return averageLength(maxChars);
  return 2 ** (Math.round(STEPS * Math.log2(sum / lengths.length)) / STEPS);
}

/**
 * BM25 weights of a chunk as `sparsevec` text: term frequencies without IDF. The inner product with `lexicalQuery`
 * is the score.
 */
export function lexicalWeights(terms: TermCounts, average: number): string {
  const norm = K1 * (1 - B + (B * terms.length) / average);
  return sparseText(terms.ids, (i) => {
    const count = terms.counts[i] ?? 0;
    return (count * (K1 + 1)) / (count + norm);
  });
}

/** Document frequencies among the rows that this caller may see only. */
export interface PermittedStatistics {
  readonly documents: number;
  documentFrequency(termId: number): number;
}

export interface LexicalQuery {
  /** `sparsevec(1048576)` text; `-(lex <#> vector)` is the score. */
  readonly vector: string;
  /** Ids of the terms that occur in permitted rows, ascending. A row with none of them scores 0. */
  readonly termIds: readonly number[];
  /** Inverse document frequency of each term among these rows. */
  readonly rarities: readonly number[];
  /** Maximum contribution of each term to a score. */
  readonly mosts: readonly number[];
}

/**
 * BM25 weights of a query over `statistics`.
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

/** Always positive, even for a term in every row. */
export function inverseFrequency(documents: number, frequency: number): number {
  return Math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5));
}

function sparseText(ids: readonly number[], weight: (i: number) => number): string {
  return `{${ids.map((id, i) => `${id}:${Number(weight(i).toPrecision(7))}`).join(',')}}/${TERM_SPACE}`;
}
