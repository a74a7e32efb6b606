import type { Span } from '../chunk.js';

/** Numbers of accounts, cards, phones and people are written in groups, and each writer groups them otherwise. */

/** Digits that a value needs to be looked for in any grouping; fewer are in every text. */
const LEAST_DIGITS = 6;
const LEAST_LENGTH = 7;
/** Groups and letters of the longest code: an IBAN has 34 letters, in nine groups of four. */
const MOST_GROUPS = 12;
const MOST_LENGTH = 40;
/** What stands between two groups: one sign, with a space or two around a bracket. */
const BETWEEN_GROUPS = /^(?:[ ]?[-./()][ ]?|[ ]|\) |\)[-./])$/;
const GROUPED = /[\p{L}\p{N}]+/gu;

/** The letters and digits of a folded value that is a code, or null where it is none. */
export function codeIn(folded: string): string | null {
  const groups = folded.match(GROUPED) ?? [];
  const code = groups.join('');
  const digits = code.replace(/\D/g, '').length;
  const isCode = digits >= LEAST_DIGITS && code.length >= LEAST_LENGTH && code.length <= MOST_LENGTH;
  // A text with a number in it is no code: in one, each group has a digit but for letters at its ends.
  const plain = groups.every((group) => /\d/.test(group) || group.length <= 4);
  return isCode && plain && groups.length <= MOST_GROUPS && digits * 2 >= code.length ? code : null;
}

/** The codes that are looked for, however they are grouped. */
export class CodeIndex {
  readonly #labels = new Map<string, string>();
  #longest = 0;

  add(code: string, label: string): void {
    if (!this.#labels.has(code)) this.#labels.set(code, label);
    this.#longest = Math.max(this.#longest, code.length);
  }

  get size(): number {
    return this.#labels.size;
  }

  /** The longest code that begins with word `i` of `text`, and the word that it ends with; null where none does. */
  at(
    text: string,
    words: readonly Span[],
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
