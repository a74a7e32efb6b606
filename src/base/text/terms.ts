/**
 * Porter's 1980 stemmer with the two usual amendments (`logi`, `bli`). Source: M. F. Porter, "An algorithm for suffix
 * stripping", Program 14(3).
 *
 * @param word lower-case; returned unchanged if it has letters other than a–z or fewer than three letters
 */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
  let w = word.startsWith('y') ? `Y${word.slice(1)}` : word;
  w = step1c(step1b(step1a(w)));
  w = replaceSuffix(w, STEP_2, 0);
  w = replaceSuffix(w, STEP_3, 0);
  w = step5(step4(w));
  return w.toLowerCase();
}

const C = '[^aeiou]';
const V = '[aeiouy]';
const CC = `${C}[^aeiouy]*`;
const VV = `${V}[aeiou]*`;
const MORE_THAN_0 = new RegExp(`^(${CC})?${VV}${CC}`);
const EXACTLY_1 = new RegExp(`^(${CC})?${VV}${CC}(${VV})?$`);
const MORE_THAN_1 = new RegExp(`^(${CC})?${VV}${CC}${VV}${CC}`);
const HAS_VOWEL = new RegExp(`^(${CC})?${V}`);
const SHORT = new RegExp(`^${CC}${V}[^aeiouwxy]$`);
const DOUBLE = /([^aeiouylsz])\1$/;

type Suffixes = readonly (readonly [suffix: string, replacement: string])[];

const STEP_2: Suffixes = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['bli', 'ble'],
  ['alli', 'al'],
  ['entli', 'ent'],
  ['eli', 'e'],
  ['ousli', 'ous'],
  ['ization', 'ize'],
  ['ation', 'ate'],
  ['ator', 'ate'],
  ['alism', 'al'],
  ['iveness', 'ive'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['biliti', 'ble'],
  ['logi', 'log'],
];

const STEP_3: Suffixes = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ful', ''],
  ['ness', ''],
];

const STEP_4 = /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ou|ism|ate|iti|ous|ive|ize)$/;

function step1a(w: string): string {
  if (/(ss|i)es$/.test(w)) return w.slice(0, -2);
  return /[^s]s$/.test(w) ? w.slice(0, -1) : w;
}

function step1b(w: string): string {
  if (w.endsWith('eed')) return MORE_THAN_0.test(w.slice(0, -3)) ? w.slice(0, -1) : w;
  const suffix = w.endsWith('ed') ? 2 : w.endsWith('ing') ? 3 : 0;
  const base = w.slice(0, w.length - suffix);
  if (suffix === 0 || !HAS_VOWEL.test(base)) return w;
  if (/(at|bl|iz)$/.test(base)) return `${base}e`;
  if (DOUBLE.test(base)) return base.slice(0, -1);
  return SHORT.test(base) ? `${base}e` : base;
}

function step1c(w: string): string {
  return w.endsWith('y') && HAS_VOWEL.test(w.slice(0, -1)) ? `${w.slice(0, -1)}i` : w;
}

function replaceSuffix(w: string, suffixes: Suffixes, at: number): string {
  for (let i = at; i < suffixes.length; i++) {
    const [suffix, replacement] = suffixes[i] ?? ['', ''];
    if (!w.endsWith(suffix)) continue;
    const base = w.slice(0, w.length - suffix.length);
    return MORE_THAN_0.test(base) ? base + replacement : w;
  }
  return w;
}

function step4(w: string): string {
  const base = STEP_4.exec(w)?.[1];
  if (base !== undefined) return MORE_THAN_1.test(base) ? base : w;
  const ion = /^(.+?[st])ion$/.exec(w)?.[1];
  return ion !== undefined && MORE_THAN_1.test(ion) ? ion : w;
}

function step5(w: string): string {
  let out = w;
  if (out.endsWith('e')) {
    const base = out.slice(0, -1);
    if (MORE_THAN_1.test(base) || (EXACTLY_1.test(base) && !SHORT.test(base))) out = base;
  }
  return out.endsWith('ll') && MORE_THAN_1.test(out) ? out.slice(0, -1) : out;
}

/**
 * Characters that NFKC may combine with the preceding letter: marks, Hangul vowels and final consonants (including
 * compatibility forms), and half-width Katakana voice marks.
 */
const JOINED = String.raw`\p{M}\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7ff\uff9e-\uffdc`;
const UNIT = new RegExp(`[^${JOINED}][${JOINED}]*|[${JOINED}]+`, 'gu');

/** A range in UTF-16 code units, excluding its end. */
interface WordSpan {
  readonly start: number;
  readonly end: number;
}

/** A text in NFKC that can map its ranges back to the original text. */
class CompatibleText {
  readonly text: string;
  readonly #from: string;
  /** Start offsets of separately normalized units, in this text and in the original; null until needed. */
  #units: { readonly here: readonly number[]; readonly there: readonly number[] } | null = null;

  constructor(from: string) {
    this.#from = from;
    this.text = from.normalize('NFKC');
  }

  /** Returns the smallest range of the original that produced the given range. */
  before({ start, end }: WordSpan): WordSpan {
    if (this.text === this.#from) return { start, end };
    this.#units ??= unitsOf(this.#from);
    const { here, there } = this.#units;
    return {
      start: there[lastUpTo(here, start)] ?? 0,
      end: there[lastUpTo(here, end - 1) + 1] ?? this.#from.length,
    };
  }
}

function unitsOf(from: string) {
  const [here, there]: [number[], number[]] = [[], []];
  let length = 0;
  for (const { 0: unit, index } of from.matchAll(UNIT)) {
    here.push(length);
    there.push(index);
    length += unit.normalize('NFKC').length;
  }
  return { here, there };
}

/** Returns the last index whose value is at most `most`; 0 if all values are larger. */
function lastUpTo(ascending: readonly number[], most: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((ascending[middle] ?? 0) <= most) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Lucene's English stop words. */
const STOP_WORDS: ReadonlySet<string> = new Set(
  (
    'a an and are as at be but by for if in into is it no not of on or such that the their then there these ' +
    'they this to was will with'
  ).split(' '),
);

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
const HUMP = /\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+|\p{N}+|[^\p{Lu}\p{Ll}\p{N}]+/gu;
/** Equivalent to `HUMP` for ASCII words, but twice as fast. */
const ASCII_HUMP = /[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+/g;
/** Scripts written without spaces, where pairs of letters are used as words. */
export const UNSPACED = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}]/u;

/** Letters without a Unicode decomposition, with the plain letters that people often write instead. */
const PLAIN: ReadonlyMap<string, string> = new Map(
  Object.entries({ ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ı: 'i' }),
);
const ASCII = /^[\x00-\x7f]*$/;

/**
 * Removes accents from Latin letters only, since in other scripts a mark creates a different letter, such as й. Also
 * replaces the letters in `PLAIN`.
 */
export function withoutAccents(lower: string): string {
  if (ASCII.test(lower)) return lower;
  return lower
    .normalize('NFD')
    .replace(/(\p{Script=Latin})\p{M}+/gu, '$1')
    .normalize('NFC')
    .replace(/[ßæœøłđı]/g, (letter) => PLAIN.get(letter) ?? letter);
}

/** A term and its range in the given text. */
export interface PlacedTerm extends WordSpan {
  readonly term: string;
}

export interface WordRules {
  /** Returns the terms of a lower-case word; none for a stop word. */
  termsOf(lower: string): readonly string[];
  /** Segments a run of text without spaces into words; null if pairs of letters are used instead. */
  readonly cut: ((run: string) => Iterable<{ readonly segment: string; readonly index: number }>) | null;
}

/** Rules for texts in an unknown language, with English stop words and stemming. */
export const ANY_LANGUAGE: WordRules = Object.freeze({
  termsOf(lower: string) {
    const plain = withoutAccents(lower);
    return STOP_WORDS.has(plain) ? [] : [stem(plain)];
  },
  cut: null,
});

/** Yields every term of `text` in order. */
export function* termTexts(text: string, rules: WordRules = ANY_LANGUAGE): Generator<string> {
  for (const { term } of termsWithin(text.normalize('NFKC'), rules)) yield term;
}

/** Like `termTexts`, but with the range of `text` that produced each term. */
export function* placedTerms(text: string, rules: WordRules = ANY_LANGUAGE): Generator<PlacedTerm> {
  const compatible = new CompatibleText(text);
  for (const found of termsWithin(compatible.text, rules))
    yield { term: found.term, ...compatible.before(found) };
}

function* termsWithin(text: string, rules: WordRules): Generator<PlacedTerm> {
  for (const { 0: word, index: start } of text.matchAll(WORD)) {
    if (ASCII.test(word) || !UNSPACED.test(word)) yield* termsOfWord(word, start, rules);
    else if (rules.cut === null) yield* pairsOf(word, start);
    else yield* termsOfRun(word, start, rules, rules.cut);
  }
}

/** Yields the whole word and then, if it is written likeThis or has digits, its parts. */
function* termsOfWord(word: string, start: number, rules: WordRules): Generator<PlacedTerm> {
  const lower = word.toLowerCase();
  for (const term of rules.termsOf(lower)) yield { term, start, end: start + word.length };
  if (word === lower && !/\p{N}/u.test(word)) return;
  const parts = [...word.matchAll(ASCII.test(word) ? ASCII_HUMP : HUMP)];
  if (parts.length < 2) return;
  for (const { 0: part, index } of parts) {
    const small = part.toLowerCase();
    if (withoutAccents(small).length < 2) continue;
    const from = start + index;
    for (const term of rules.termsOf(small)) yield { term, start: from, end: from + part.length };
  }
}

function* termsOfRun(
  run: string,
  start: number,
  rules: WordRules,
  cut: NonNullable<WordRules['cut']>,
): Generator<PlacedTerm> {
  for (const { segment, index } of cut(run)) {
    const from = start + index;
    if (!UNSPACED.test(segment)) yield* termsOfWord(segment, from, rules);
    else
      for (const term of rules.termsOf(segment.toLowerCase()))
        yield { term, start: from, end: from + segment.length };
  }
}

/** Yields pairs of letters. If lower-casing changed the length, each pair gets the range of the whole word. */
function* pairsOf(word: string, start: number): Generator<PlacedTerm> {
  const lower = word.toLowerCase();
  const letters = [...lower];
  const end = start + word.length;
  if (letters.length === 1) yield { term: lower, start, end };
  let from = start;
  for (let i = 1; i < letters.length; i++) {
    const [first = '', second = ''] = [letters[i - 1], letters[i]];
    const term = `${first}${second}`;
    yield lower.length === word.length
      ? { term, start: from, end: from + term.length }
      : { term, start, end };
    from += first.length;
  }
}
