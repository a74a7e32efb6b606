import { TERM_SPACE, type TermCounts } from './terms.js';

export const K1 = 1.2;
export const B = 0.75;

/** Characters of English text for each term that survives the stop list; measured on the bench's corpora. */
const CHARS_PER_TERM = 8;
/** Chunks break at paragraphs, so that the usual one is not full. */
const USUAL_FILL = 0.75;

/**
 * The average document length that BM25 divides by, for a store that is made of nothing.
 *
 * @param maxChars the facet's chunk size
 */
export function averageLength(maxChars: number): number {
  return Math.max(1, Math.round((maxChars * USUAL_FILL) / CHARS_PER_TERM));
}

/** Steps from a length to its double: a ranking hardly tells lengths apart that are nearer. */
const STEPS = 2;

/**
 * The same for a store whose first passages have `lengths` terms: their mean, on a ladder of steps. A store has one
 * for ever, so that no document that comes or goes later shifts the scores of others; and as the ladder is coarse, those
 * of the first build hardly tell of each other (decision 75).
 */
export function measuredLength(lengths: readonly number[], maxChars: number): number {
  const sum = lengths.reduce((all, length) => all + length, 0);
  if (sum === 0) return averageLength(maxChars);
  return 2 ** (Math.round(STEPS * Math.log2(sum / lengths.length)) / STEPS);
}

/**
 * A chunk's side of BM25 as `sparsevec` text: term-frequency weights, no IDF in them. The inner product with
 * `lexicalQuery` is the score.
 */
export function lexicalWeights(terms: TermCounts, average: number): string {
  const norm = K1 * (1 - B + (B * terms.length) / average);
  return sparseText(terms.ids, (i) => {
    const count = terms.counts[i] ?? 0;
    return (count * (K1 + 1)) / (count + norm);
  });
}

/** Document frequencies over the rows that this caller may see, and no others. */
export interface PermittedStatistics {
  readonly documents: number;
  documentFrequency(termId: number): number;
}

export interface LexicalQuery {
  /** `sparsevec(1048576)` text; `-(lex <#> vector)` is the score. */
  readonly vector: string;
  /** Ids of the terms that occur in permitted rows, ascending. A row with none of them scores 0: leave it out. */
  readonly termIds: readonly number[];
  /** Inverse document frequency of each term among these rows. */
  readonly rarities: readonly number[];
  /** Largest contribution of each term to a score. */
  readonly mosts: readonly number[];
}

/**
 * The query's side of BM25 over `statistics`: of the terms of its text, as `termsOf` counts them.
 *
 * @returns null where none of `terms` occurs in a permitted row: then nothing matches
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

/** Always above 0, also for a term in every row. */
export function inverseFrequency(documents: number, frequency: number): number {
  return Math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5));
}

function sparseText(ids: readonly number[], weight: (i: number) => number): string {
  return `{${ids.map((id, i) => `${id}:${Number(weight(i).toPrecision(7))}`).join(',')}}/${TERM_SPACE}`;
}
