import type { TextSpan } from '../chunk.js';
import { type FoldedText, fold, foldText } from './fold.js';

/** Letters, each with the two letters that people type if their keyboard lacks it. */
const AS_TWO: ReadonlyMap<string, string> = new Map([
  ['ä', 'ae'],
  ['ö', 'oe'],
  ['ü', 'ue'],
  ['å', 'aa'],
  ['ø', 'oe'],
]);
const WITH_TWO = new RegExp(`[${[...AS_TWO.keys()].join('')}]`, 'g');
const APOSTROPHE = /(?<=\p{L})['’ʼ`´‘](?=\p{L})/gu;
const HYPHEN = /(?<=\p{L})[-‐‑](?=\p{L})/gu;
/**
 * Minimum length of a name whose other spellings are searched for; those of shorter names too often match other words.
 */
const LEAST_LETTERS = 5;

/**
 * Other spellings of a name: `Mueller` for Müller, `OBrien` for O'Brien, `Anne Marie` for Anne-Marie. Empty if the
 * value has no other spelling.
 */
function otherSpellings(value: string): readonly string[] {
  const name = value.normalize('NFC').toLowerCase();
  if (name.length < LEAST_LETTERS || !/^[\p{L}\p{M}\s.'’ʼ`´‘‐‑-]+$/u.test(name)) return [];
  const others = new Set([name]);
  for (const respell of [asTwo, withoutApostrophes, withSpaces])
    for (const spelling of [...others]) others.add(respell(spelling));
  others.delete(name);
  return [...others];
}

function asTwo(name: string): string {
  return name.replace(WITH_TWO, (letter) => AS_TWO.get(letter) ?? letter);
}

function withoutApostrophes(name: string): string {
  return name.replace(APOSTROPHE, '');
}

function withSpaces(name: string): string {
  return name.replace(HYPHEN, ' ');
}

/**
 * Values with at least this many digits are searched for in any grouping: account, card, phone and identity numbers.
 */
const LEAST_DIGITS = 6;
const LEAST_LENGTH = 7;
/** Limits on a code: an IBAN has up to 34 characters, in nine groups of up to four. */
const MOST_GROUPS = 12;
const MOST_LENGTH = 40;
/** Separator between two groups: a single punctuation mark or space, possibly combined with a bracket or spaces. */
const BETWEEN_GROUPS = /^(?:[ ]?[-./()][ ]?|[ ]|\) |\)[-./])$/;
const GROUPED = /[\p{L}\p{N}]+/gu;

/** Returns the letters and digits of a folded value if it is a code, such as an account number; otherwise null. */
function codeIn(folded: string): string | null {
  const groups = folded.match(GROUPED) ?? [];
  const code = groups.join('');
  const digits = code.replace(/\D/g, '').length;
  const isCode = digits >= LEAST_DIGITS && code.length >= LEAST_LENGTH && code.length <= MOST_LENGTH;
  // Distinguishes codes from text that contains a number: in a code, a group without a digit is short.
  const plain = groups.every((group) => /\d/.test(group) || group.length <= 4);
  return isCode && plain && groups.length <= MOST_GROUPS && digits * 2 >= code.length ? code : null;
}

class CodeIndex {
  readonly #labels = new Map<string, string>();
  #longest = 0;

  add(code: string, label: string): void {
    if (!this.#labels.has(code)) this.#labels.set(code, label);
    this.#longest = Math.max(this.#longest, code.length);
  }

  get size(): number {
    return this.#labels.size;
  }

  /**
   * Finds the longest known code that begins at word `i` of `text`. Returns the code's label and the index of its last
   * word; null if no known code begins there.
   */
  at(
    text: string,
    words: readonly TextSpan[],
    i: number,
  ): { readonly last: number; readonly label: string } | null {
    const first = words[i];
    if (this.#labels.size === 0 || first === undefined) return null;
    let code = '';
    let best: { last: number; label: string } | null = null;
    for (let j = i; j < words.length && j < i + MOST_GROUPS; j++) {
      const word = words[j];
      const before = words[j - 1];
      if (word === undefined) break;
      if (j > i && before !== undefined && !BETWEEN_GROUPS.test(text.slice(before.end, word.start))) break;
      code += text.slice(word.start, word.end);
      if (code.length > this.#longest) break;
      const label = this.#labels.get(code);
      if (label !== undefined) best = { last: j, label };
    }
    return best;
  }
}

/** Text that replaces a redacted value. */
export const MASK = '[redacted]';

/** A value that must not appear in served text, with its sensitivity label. */
export interface DeclaredValue {
  readonly value: string;
  readonly label: string;
}

/** Reason not to search for a declared value: too short, without a word, in conflict with the mask, or an exception. */
export type Exception = 'short' | 'noWord' | 'mask' | 'declared';

export interface DictionaryMatch extends TextSpan {
  readonly label: string;
}

/** Scripts without spaces, in which each letter counts as a word, so that names are found inside a sentence. */
const UNSPACED = '\\p{scx=Han}\\p{scx=Hiragana}\\p{scx=Katakana}\\p{scx=Thai}\\p{scx=Lao}\\p{scx=Khmer}';
const WORD = new RegExp(`[${UNSPACED}]\\p{M}*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`, 'gu');
const ASCII_WORD = /[a-z0-9]+/g;
const ASCII = /^[\x01-\x7f]*$/;

/**
 * Finds many values in a text, as whole words of the folded text; codes are found in any grouping. The map contains
 * each value and all of its prefixes that end with a word, so that a single scan of the text finds any number of
 * values.
 */
export class ValueMatcher {
  /** Maps each value to its label, and each prefix of a value to null. */
  readonly #known = new Map<string, string | null>();
  readonly #minLength: number;
  readonly #exceptions = new Map<Exception, number>();
  readonly #codes = new CodeIndex();
  readonly #words: ReadonlySet<string>;
  #longest = 0;
  #size = 0;

  /**
   * @param minLength minimum length of a value, in UTF-16 code units after folding
   * @param words values that are ordinary words and are not searched for
   */
  constructor(values: Iterable<DeclaredValue>, minLength: number, words: readonly string[] = []) {
    this.#minLength = minLength;
    this.#words = new Set(words.map((word) => trimmed(foldText(word))));
    for (const value of values) this.#add(value);
  }

  get size(): number {
    return this.#size;
  }

  /** Length of the longest folded value, in UTF-16 code units. */
  get longest(): number {
    return this.#longest;
  }

  /** Number of values that are not searched for, by reason. */
  get exceptions(): ReadonlyMap<Exception, number> {
    return this.#exceptions;
  }

  #add({ value, label }: DeclaredValue): void {
    const folded = foldText(value);
    const text = trimmed(folded);
    const exception = this.#exceptionOf(text);
    if (exception !== null) {
      this.#exceptions.set(exception, (this.#exceptions.get(exception) ?? 0) + 1);
      return;
    }
    if (this.#look(text, label)) this.#size++;
    for (const other of otherSpellings(value)) {
      const spelling = trimmed(foldText(other));
      if (this.#exceptionOf(spelling) === null) this.#look(spelling, label);
    }
    const code = codeIn(folded);
    if (code !== null) this.#codes.add(code, label);
  }

  /** Adds `text`; returns false if it was already present. */
  #look(text: string, label: string): boolean {
    if (typeof this.#known.get(text) === 'string') return false;
    for (const { end } of wordsOf(text)) {
      const beginning = text.slice(0, end);
      if (!this.#known.has(beginning)) this.#known.set(beginning, null);
    }
    this.#known.set(text, label);
    this.#longest = Math.max(this.#longest, text.length);
    return true;
  }

  #exceptionOf(text: string): Exception | null {
    if (text === '') return 'noWord';
    if (this.#words.has(text)) return 'declared';
    // The mask contains the word `redacted`, so the redaction of such a value could run forever.
    if (/\bredacted\b/.test(text)) return 'mask';
    const unspaced = new RegExp(`[${UNSPACED}]`, 'u').test(text);
    return text.length < (unspaced ? Math.min(2, this.#minLength) : this.#minLength) ? 'short' : null;
  }

  /**
   * Finds values in `text`; offsets are in UTF-16 code units. Matches are ordered by start; of those with the same
   * start, only the longest is kept.
   */
  find(text: string): readonly DictionaryMatch[] {
    return this.#size === 0 ? [] : this.findFolded(fold(text));
  }

  findFolded(folded: FoldedText): readonly DictionaryMatch[] {
    const words = wordsOf(folded.text);
    const found: DictionaryMatch[] = [];
    for (let i = 0; i < words.length; i++) {
      const match = longer(this.#longestAt(folded.text, words, i), this.#codeAt(folded.text, words, i));
      if (match === null) continue;
      const start = folded.starts[match.start] ?? 0;
      const end = folded.ends[match.end - 1] ?? start;
      found.push({ start, end, label: match.label });
    }
    return found;
  }

  #codeAt(text: string, words: readonly TextSpan[], i: number): DictionaryMatch | null {
    const code = this.#codes.at(text, words, i);
    const [first, last] = [words[i], words[code?.last ?? i]];
    if (code === null || first === undefined || last === undefined) return null;
    return { start: first.start, end: last.end, label: code.label };
  }

  #longestAt(text: string, words: readonly TextSpan[], i: number): DictionaryMatch | null {
    const start = words[i]?.start ?? 0;
    let best: DictionaryMatch | null = null;
    for (let j = i; j < words.length; j++) {
      const end = words[j]?.end ?? start;
      const label = this.#known.get(text.slice(start, end));
      if (label === undefined) return best;
      if (label !== null) best = { start, end, label };
    }
    return best;
  }
}

/** Returns the text from the start of its first word to the end of its last word; empty if there are no words. */
function trimmed(folded: string): string {
  const words = wordsOf(folded);
  return folded.slice(words[0]?.start ?? 0, words.at(-1)?.end ?? 0);
}

function longer(one: DictionaryMatch | null, other: DictionaryMatch | null): DictionaryMatch | null {
  if (one === null || other === null) return one ?? other;
  return other.end > one.end ? other : one;
}

function wordsOf(folded: string): readonly TextSpan[] {
  const words: TextSpan[] = [];
  for (const { 0: word, index } of folded.matchAll(ASCII.test(folded) ? ASCII_WORD : WORD)) {
    words.push({ start: index, end: index + word.length });
  }
  return words;
}
