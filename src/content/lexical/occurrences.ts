import { ANY_LANGUAGE, placedTerms, type WordRules } from '../../base/text/terms.js';
import { CodePoints } from '../offsets.js';
import { STEP, termId } from './terms.js';

/** Spans of one text at most, those that come first: nobody reads more, and an answer has many texts. */
const MOST_SPANS = 100;

/** Where some terms stand in a text, and how often. */
export interface Occurrences {
  /** From and to in code points, the end not included: ascending, none touching another. */
  readonly spans: readonly (readonly [number, number])[];
  /** By term id, of those that occur. */
  readonly counts: ReadonlyMap<number, number>;
}

/** Where `text` has terms of these ids: as BM25 counts them, so that a stretch is what the score was made of. */
export function occurrencesOf(
  text: string,
  ids: ReadonlySet<number>,
  rules: WordRules = ANY_LANGUAGE,
): Occurrences {
  const counts = new Map<number, number>();
  const points = new CodePoints(text);
  const spans: [number, number][] = [];
  // Terms come in the order in which they begin: a word before its parts, a pair of letters before the next.
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

/** The terms of a text by their ids, in its order: each as it is written there first, and how often it is there. */
export type WrittenTerms = ReadonlyMap<number, { readonly term: string; readonly times: number }>;

/** How `text` writes its terms, in steps of a few milliseconds. */
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
