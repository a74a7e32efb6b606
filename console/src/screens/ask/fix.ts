import type { Problem } from '../../../../clients/typescript/types.js';

/** Change to the text that would fix an error. Offsets are in UTF-16 code units. */
interface SuggestedEdit {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

const PATH = /^(?:[\p{L}\p{N}_$]+|"(?:[^"]|"")*")(?:\.(?:[\p{L}\p{N}_$]+|"(?:[^"]|"")*"))*/u;

/** Returns the range of the text to which an error refers; null if the error has no position in the text. */
export function placeOf(
  text: string,
  position: Problem['position'],
): { readonly from: number; readonly to: number } | null {
  if (position === null || position.offset > text.length) return null;
  const from = position.offset;
  const path = PATH.exec(text.slice(from))?.[0] ?? '';
  return { from, to: Math.min(text.length, from + Math.max(1, path.length)) };
}

/**
 * Returns the edit that replaces an undeclared name with the gateway's suggestion: the last part of a path, or the
 * whole path of an object or table outside `entities`. Null if the hint suggests no name or the text lacks the name.
 */
export function fixOf(
  text: string,
  { position, hint, detail }: Pick<Problem, 'position' | 'hint' | 'detail'>,
): SuggestedEdit | null {
  const insert = /^perhaps you meant `([^`]+)`$/.exec(hint ?? '')?.[1];
  const place = placeOf(text, position);
  const [, what = '', path = ''] = /^(.*?)`([^`]+)`/.exec(detail) ?? [];
  if (insert === undefined || place === null) return null;
  const wrong = path.split('.').at(-1);
  const word = wordsIn(text, place.from).find(({ name }) => name === wrong);
  if (word === undefined) return null;
  const elsewhere =
    /^(?:object|table) /.test(what) && path.includes('.') && !/^(?:osl\.)?entities\./.test(path);
  return { from: elsewhere ? place.from : word.from, to: word.to, insert };
}

interface Word {
  /** Normalized name: without quotes; in lower case if it was not quoted. */
  readonly name: string;
  /** Offsets in the text; for a literal they exclude the quotes. */
  readonly from: number;
  readonly to: number;
}

function wordsIn(text: string, start: number): readonly Word[] {
  const found = text.slice(start).matchAll(/'((?:[^']|'')*)'|"((?:[^"]|"")*)"|[\p{L}_][\p{L}\p{N}_$]*/gu);
  return [...found].map(({ 0: all, 1: literal, 2: quoted, index }) => {
    const from = start + index + (literal === undefined ? 0 : 1);
    const name = literal?.replaceAll("''", "'") ?? quoted?.replaceAll('""', '"') ?? all.toLowerCase();
    return { name, from, to: from + (literal ?? all).length };
  });
}

export function applied(text: string, { from, to, insert }: SuggestedEdit): string {
  return text.slice(0, from) + insert + text.slice(to);
}
