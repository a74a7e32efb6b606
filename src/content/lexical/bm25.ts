import { atOnce } from '../../base/in-turns.js';
import { ANY_LANGUAGE, placedTerms, termTexts, type WordRules } from '../../base/text/terms.js';
import { CodePoints } from '../chunk.js';

/** Size of the hashed vocabulary: term ids are 1 … 2²⁰, the positions of a `sparsevec(1048576)`. */
export const TERM_SPACE = 1_048_576;

export interface TermCounts {
  /** Distinct term ids in ascending order. */
  readonly ids: readonly number[];
  /** Number of occurrences of `ids[i]`. */
  readonly counts: readonly number[];
  /** Total number of occurrences of all terms. */
  readonly length: number;
}

/**
 * Returns the terms of a text: words regardless of case and inflection, and the parts of words written likeThis. Both
 * the parts and the whole word count, so `parse args` finds `parseArgs` and vice versa.
 */
export function termsOf(text: string, rules: WordRules = ANY_LANGUAGE): TermCounts {
  return atOnce(termsInSteps(text, rules));
}

/** Like `termsOf`, but yields every few milliseconds, for texts of any length. */
export function* termsInSteps(text: string, rules: WordRules): Generator<void, TermCounts> {
  const counts = new Map<number, number>();
  let length = 0;
  for (const term of termTexts(text, rules)) {
    const id = termId(term);
    counts.set(id, (counts.get(id) ?? 0) + 1);
    length++;
    if (length % STEP === 0) yield;
  }
  const ids = [...counts.keys()].sort((a, b) => a - b);
  return { ids, counts: ids.map((id) => counts.get(id) ?? 0), length };
}

const STEP = 4_096;

function termId(term: string): number {
  return (hash32(term, 0x811c9dc5) & (TERM_SPACE - 1)) + 1;
}

/** FNV-1a over UTF-16 code units with murmur's finalizer, so that all bits are well distributed. */
export function hash32(text: string, seed: number): number {
  let h = seed;
  for (let i = 0; i < text.length; i++) h = hashStep(h, text.charCodeAt(i));
  return hashEnd(h);
}

export function hashStep(h: number, unit: number): number {
  return Math.imul(h ^ unit, 0x01000193);
}

export function hashEnd(state: number): number {
  let h = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Maximum number of spans per text; the first ones are kept. */
const MOST_SPANS = 100;

interface Occurrences {
  /** Half-open ranges in code points, ascending and not adjacent. */
  readonly spans: readonly (readonly [number, number])[];
  readonly counts: ReadonlyMap<number, number>;
}

/** Finds where the terms with the ids `ids` occur in `text`, and counts them as BM25 does. */
export function occurrencesOf(
  text: string,
  ids: ReadonlySet<number>,
  rules: WordRules = ANY_LANGUAGE,
): Occurrences {
  const counts = new Map<number, number>();
  const points = new CodePoints(text);
  const spans: [number, number][] = [];
  // Terms are ordered by start: a word comes before its parts, and a pair of letters before the next pair.
  for (const { term, start, end } of placedTerms(text, rules)) {
    const id = termId(term);
    if (!ids.has(id)) continue;
    counts.set(id, (counts.get(id) ?? 0) + 1);
    if (spans.length > MOST_SPANS) continue;
    const span = points.span({ start, end });
    const last = spans.at(-1);
    if (last !== undefined && span.start <= last[1]) last[1] = Math.max(last[1], span.end);
    else spans.push([span.start, span.end]);
  }
  return { spans: spans.slice(0, MOST_SPANS), counts };
}

/** Terms of a text by id, in text order, each with its first spelling and its number of occurrences. */
export type WrittenTerms = ReadonlyMap<number, { readonly term: string; readonly times: number }>;

/** Finds the first spelling of each term in `text`. Yields every few milliseconds. */
export function* writtenInSteps(text: string, rules: WordRules): Generator<void, WrittenTerms> {
  const written = new Map<number, { term: string; times: number }>();
  let looked = 0;
  for (const { term, start, end } of placedTerms(text, rules)) {
    const id = termId(term);
    const known = written.get(id);
    if (known === undefined) written.set(id, { term: text.slice(start, end), times: 1 });
    else known.times++;
    looked++;
    if (looked % STEP === 0) yield;
  }
  return written;
}

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
 * Average document length for a store whose first passages have `lengths` terms: the mean of `lengths`, rounded to a
 * step. A store's average never changes, so later documents do not affect the scores of earlier ones; and because the
 * steps are coarse, the average reveals little about the first documents (decision 75).
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

export interface Bm25Query {
  /** `sparsevec(1048576)` text; `-(lex <#> vector)` is the score. */
  readonly vector: string;
  /** Ids of the query terms that occur in permitted rows, ascending. A row without any of these terms scores 0. */
  readonly termIds: readonly number[];
  /** Inverse document frequency of each term among the permitted rows. */
  readonly rarities: readonly number[];
  /** Maximum contribution of each term to a score. */
  readonly maxScores: readonly number[];
}

/**
 * BM25 weights of a query, based on `statistics`.
 *
 * @returns null if none of `terms` occurs in a permitted row
 */
export function lexicalQuery(terms: TermCounts, statistics: PermittedStatistics): Bm25Query | null {
  const found = terms.ids
    .map((id, i) => ({ id, count: terms.counts[i] ?? 0, frequency: statistics.documentFrequency(id) }))
    .filter((t) => t.frequency > 0);
  if (found.length === 0) return null;
  const termIds = found.map((t) => t.id);
  const rarities = found.map((t) => inverseFrequency(statistics.documents, t.frequency));
  const weights = found.map((t, i) => t.count * (rarities[i] ?? 0));
  const vector = sparseText(termIds, (i) => weights[i] ?? 0);
  return { vector, termIds, rarities, maxScores: weights.map((weight) => weight * (K1 + 1)) };
}

/** Inverse document frequency of a term; positive even if the term is in every row. */
export function inverseFrequency(documents: number, frequency: number): number {
  return Math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5));
}

function sparseText(ids: readonly number[], weight: (i: number) => number): string {
  return `{${ids.map((id, i) => `${id}:${Number(weight(i).toPrecision(7))}`).join(',')}}/${TERM_SPACE}`;
}
