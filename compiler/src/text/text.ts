import type { Position } from '../errors/errors.js';
import { identifier } from './sql-text.js';

/**
 * The caller's text, and what is needed to map offsets in the parsed text back to it.
 *
 * The parser counts UTF-8 bytes; callers count UTF-16 code units. `quoted` lists the byte offsets of quotes inserted
 * before parsing, in ascending order.
 */
export interface SourceText {
  readonly original: string;
  readonly quoted: readonly number[];
}

/** Returns the position in the original text of byte `offset` in the parsed text. */
export function positionAt(source: SourceText, offset: number): Position {
  const bytes = offset - source.quoted.filter((q) => q < offset).length;
  return positionOfIndex(source.original, indexOfByte(source.original, bytes));
}

/**
 * Returns the UTF-16 index after `bytes` UTF-8 bytes of `text`. To resume, pass an earlier `index` and the bytes
 * `seen` so far.
 */
export function indexOfByte(text: string, bytes: number, index = 0, seen = 0): number {
  const plain = asciiLength(text, index, index + bytes - seen);
  let [at, passed] = [index + plain, seen + plain];
  while (passed < bytes && at < text.length) {
    const width = widthAt(text, at);
    passed += utf8Length(text, at);
    at += width;
  }
  return at;
}

/** Returns the number of UTF-8 bytes between UTF-16 indexes `from` and `to`. */
export function bytesBetween(text: string, from: number, to: number): number {
  let bytes = asciiLength(text, from, to);
  for (let at = from + bytes; at < to; at += widthAt(text, at)) bytes += utf8Length(text, at);
  return bytes;
}

/** Returns the UTF-16 index after the first `count` code points. */
export function indexOfCharacter(text: string, count: number): number {
  let at = asciiLength(text, 0, count);
  for (let i = at; i < count && at < text.length; i++) at += widthAt(text, at);
  return at;
}

/** Returns the number of code points before UTF-16 index `end`. */
export function charactersBefore(text: string, end: number): number {
  let count = asciiLength(text, 0, end);
  for (let at = count; at < end; at += widthAt(text, at)) count++;
  return count;
}

export function positionOfIndex(text: string, index: number): Position {
  let line = 1;
  let start = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', start)) {
    line++;
    start = at + 1;
  }
  return Object.freeze({ offset: index, line, column: index - start + 1 });
}

const NOT_ASCII = /[\u0080-\uffff]/;

/** Returns the number of ASCII characters at the start of `text` between UTF-16 indexes `from` and `to`. */
function asciiLength(text: string, from: number, to: number): number {
  const part = text.slice(from, Math.max(from, to)); // a negative end would count from the end of the text
  const other = part.search(NOT_ASCII);
  return other < 0 ? part.length : other;
}

function widthAt(text: string, at: number): 1 | 2 {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function utf8Length(text: string, at: number): number {
  const code = text.codePointAt(at) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** Maps each ASCII character to its kind, or to 0 if it is not listed. */
export function kindsByCharacter(kinds: readonly (readonly [chars: string, kind: number])[]): Uint8Array {
  const table = new Uint8Array(128);
  for (const [chars, kind] of kinds) for (const c of chars) table[c.charCodeAt(0)] = kind;
  return table;
}

/** Maximum UTF-16 length of a name for which a correction is suggested. Postgres truncates names to 63 bytes. */
const LONGEST_NAME = 64;

/** Returns the name closest to `name`, or null if none is close enough to suggest a typo. */
export function nearest(name: string, names: Iterable<string>): string | null {
  if (name.length > LONGEST_NAME) return null;
  const wanted = name.toLowerCase();
  let best: string | null = null;
  let least = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const candidate of names) {
    const distance = editDistance(wanted, candidate, least);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
    if (least === 0) break;
  }
  return best;
}

/** Returns the closest name as an SQL identifier, such as `"Employee"`; null if no name is close enough. */
export function nearestIdentifier(name: string, names: Iterable<string>): string | null {
  const near = nearest(name, names);
  return near === null ? null : identifier(near);
}

/** Returns the closest name, escaped for use in a literal (`target => 'Employee'`); null if no name is close enough. */
export function nearestInLiteral(name: string, names: Iterable<string>): string | null {
  return nearest(name, names)?.replaceAll("'", "''") ?? null;
}

/** The three rows of the distance matrix in use, allocated once for all calls. */
const ROWS = Array.from({ length: 3 }, () => new Uint16Array(2 * LONGEST_NAME + 2));

/** Returns the Damerau-Levenshtein distance (an adjacent transposition counts as one edit), capped at `bound`. */
function editDistance(a: string, candidate: string, bound: number): number {
  if (Math.abs(a.length - candidate.length) >= bound) return bound;
  const b = candidate.toLowerCase();
  const width = b.length;
  if (Math.abs(a.length - width) >= bound) return bound; // lowercasing makes some letters longer
  let [before, row, next] = ROWS as [Uint16Array, Uint16Array, Uint16Array]; // ROWS has length 3
  for (let j = 0; j <= width; j++) row[j] = j;
  let least = 0;
  for (let i = 1; i <= a.length; i++) {
    // Cells farther from the diagonal cost at least `bound`.
    const from = Math.max(1, i - bound + 1);
    const to = Math.min(width, i + bound - 1);
    next[from - 1] = from === 1 ? i : bound;
    const lastLeast = least;
    least = from === 1 ? Math.min(i, bound) : bound;
    for (let j = from; j <= to; j++) {
      const same = a.charCodeAt(i - 1) === b.charCodeAt(j - 1);
      let edits = (row[j - 1] ?? bound) + (same ? 0 : 1);
      const removed = j <= i + bound - 2 || i === 1 ? (row[j] ?? bound) + 1 : bound;
      if (removed < edits) edits = removed;
      const added = (next[j - 1] ?? bound) + 1;
      if (added < edits) edits = added;
      if (
        i > 1 &&
        j > 1 &&
        a.charCodeAt(i - 1) === b.charCodeAt(j - 2) &&
        a.charCodeAt(i - 2) === b.charCodeAt(j - 1)
      ) {
        const swapped = (before[j - 2] ?? bound) + 1;
        if (swapped < edits) edits = swapped;
      }
      next[j] = edits;
      if (edits < least) least = edits;
    }
    // If two successive rows reach the bound, all later rows do.
    if (least >= bound && lastLeast >= bound) return bound;
    [before, row, next] = [row, next, before];
  }
  return Math.min(row[width] ?? bound, bound);
}
