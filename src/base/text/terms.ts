import { Compatible, type Stretch } from './compatible.js';
import { stem } from './stem.js';

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

/** Letters that Unicode takes for letters of their own, and that people write without. */
const PLAIN: ReadonlyMap<string, string> = new Map(
  Object.entries({ ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ı: 'i' }),
);
const ASCII = /^[\x00-\x7f]*$/;

/** Of Latin letters alone: in other scripts a mark makes another letter, as it does й of и. */
function withoutAccents(lower: string): string {
  if (ASCII.test(lower)) return lower;
  return lower
    .normalize('NFD')
    .replace(/(\p{Script=Latin})\p{M}+/gu, '$1')
    .normalize('NFC')
    .replace(/[ßæœøłđı]/g, (letter) => PLAIN.get(letter) ?? letter);
}

/** A term as it occurs in a text: in UTF-16 units of the text as it was given. */
export interface PlacedTerm extends Stretch {
  readonly term: string;
}

/** Every term occurrence of `text` in its order, before hashing. */
export function* termTexts(text: string): Generator<string> {
  for (const { term } of termsWithin(text.normalize('NFKC'))) yield term;
}

/** The same, each with the stretch of `text` that it was made of: of a word, of a part of it, of a pair of letters. */
export function* placedTerms(text: string): Generator<PlacedTerm> {
  const compatible = new Compatible(text);
  for (const found of termsWithin(compatible.text)) yield { term: found.term, ...compatible.before(found) };
}

function* termsWithin(text: string): Generator<PlacedTerm> {
  for (const { 0: word, index: start } of text.matchAll(WORD)) {
    if (UNSPACED.test(word)) {
      yield* pairsOf(word, start);
      continue;
    }
    const lower = withoutAccents(word.toLowerCase());
    if (!STOP_WORDS.has(lower)) yield { term: stem(lower), start, end: start + word.length };
    if (word === word.toLowerCase() && !/\p{N}/u.test(word)) continue;
    const parts = [...word.matchAll(HUMP)];
    if (parts.length < 2) continue;
    for (const { 0: part, index } of parts) {
      const small = withoutAccents(part.toLowerCase());
      const from = start + index;
      if (small.length > 1 && !STOP_WORDS.has(small))
        yield { term: stem(small), start: from, end: from + part.length };
    }
  }
}

function* pairsOf(word: string, start: number): Generator<PlacedTerm> {
  const letters = [...word];
  if (letters.length === 1) yield { term: word.toLowerCase(), start, end: start + word.length };
  let from = start;
  for (let i = 1; i < letters.length; i++) {
    const [first = '', second = ''] = [letters[i - 1], letters[i]];
    yield { term: `${first}${second}`.toLowerCase(), start: from, end: from + first.length + second.length };
    from += first.length;
  }
}
