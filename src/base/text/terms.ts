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

/** Every term occurrence of `text` in its order, before hashing. */
export function* termTexts(text: string): Generator<string> {
  for (const [word] of text.normalize('NFKC').matchAll(WORD)) {
    if (UNSPACED.test(word)) {
      yield* pairsOf(word.toLowerCase());
      continue;
    }
    const lower = withoutAccents(word.toLowerCase());
    if (!STOP_WORDS.has(lower)) yield stem(lower);
    const parts = word === word.toLowerCase() && !/\p{N}/u.test(word) ? [] : (word.match(HUMP) ?? []);
    if (parts.length < 2) continue;
    for (const part of parts) {
      const small = withoutAccents(part.toLowerCase());
      if (small.length > 1 && !STOP_WORDS.has(small)) yield stem(small);
    }
  }
}

function* pairsOf(word: string): Generator<string> {
  const letters = [...word];
  if (letters.length === 1) yield word;
  for (let i = 1; i < letters.length; i++) yield `${letters[i - 1]}${letters[i]}`;
}
