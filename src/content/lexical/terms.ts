import { stem } from './stem.js';

/** Size of the hashed vocabulary: term ids are 1 … 2²⁰, the positions of a `sparsevec(1048576)`. */
export const TERM_SPACE = 1_048_576;

/** A text as BM25 sees it. */
export interface Terms {
  /** Distinct term ids, ascending. */
  readonly ids: readonly number[];
  /** How often `ids[i]` occurs. */
  readonly counts: readonly number[];
  /** Occurrences of all terms. */
  readonly length: number;
}

/** Lucene's English list: words so frequent that they only cost. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such that the their then there these ' +
    'they this to was will with'
  ).split(' '),
);

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
const HUMP = /\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|[^\p{Lu}\p{Ll}\p{N}]+/gu;
/** Scripts written without spaces: pairs of letters stand in for words. */
const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}]/u;

/**
 * The terms of a text: words without case and inflection, and the parts of words written likeThis.
 * Parts and whole both count, so that `parse args` finds `parseArgs` and the other way round.
 */
export function termsOf(text: string): Terms {
  const counts = new Map<number, number>();
  let length = 0;
  for (const term of termTexts(text)) {
    const id = termId(term);
    counts.set(id, (counts.get(id) ?? 0) + 1);
    length++;
  }
  const ids = [...counts.keys()].sort((a, b) => a - b);
  return { ids, counts: ids.map((id) => counts.get(id) ?? 0), length };
}

/** Every term occurrence of `text` in its order, before hashing. */
export function* termTexts(text: string): Generator<string> {
  for (const [word] of text.normalize('NFKC').matchAll(WORD)) {
    if (UNSPACED.test(word)) {
      yield* pairsOf(word.toLowerCase());
      continue;
    }
    const lower = word.toLowerCase();
    if (!STOP_WORDS.has(lower)) yield stem(lower);
    const parts = lower === word && !/\p{N}/u.test(word) ? [] : (word.match(HUMP) ?? []);
    if (parts.length < 2) continue;
    for (const part of parts) {
      const small = part.toLowerCase();
      if (small.length > 1 && !STOP_WORDS.has(small)) yield stem(small);
    }
  }
}

function* pairsOf(word: string): Generator<string> {
  const letters = [...word];
  if (letters.length === 1) yield word;
  for (let i = 1; i < letters.length; i++) yield `${letters[i - 1]}${letters[i]}`;
}

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
