import { atOnce } from '../../base/in-turns.js';
import { ANY_LANGUAGE, termTexts, type WordRules } from '../../base/text/terms.js';

/** Size of the hashed vocabulary: term ids are 1 … 2²⁰, the positions of a `sparsevec(1048576)`. */
export const TERM_SPACE = 1_048_576;

/** A text as BM25 sees it. */
export interface TermCounts {
  /** Distinct term ids, ascending. */
  readonly ids: readonly number[];
  /** How often `ids[i]` occurs. */
  readonly counts: readonly number[];
  /** Occurrences of all terms. */
  readonly length: number;
}

/**
 * The terms of a text: words without case and inflection, and the parts of words written likeThis.
 * Parts and whole both count, so that `parse args` finds `parseArgs` and the other way round.
 */
export function termsOf(text: string, rules: WordRules = ANY_LANGUAGE): TermCounts {
  return atOnce(termsInSteps(text, rules));
}

/** What `termsOf` gives, in steps of a few milliseconds: for texts as long as whoever sends them likes. */
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

/** Occurrences of terms that one step of a work in steps looks at. */
export const STEP = 4_096;

/** 1 … 2²⁰. */
export function termId(term: string): number {
  return (hash32(term, 0x811c9dc5) & (TERM_SPACE - 1)) + 1;
}

/** FNV-1a over UTF-16 units with murmur's finish, so that low bits are as good as high ones. */
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
