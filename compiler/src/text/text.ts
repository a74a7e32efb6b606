import type { Position } from '../errors/errors.js';
import { identifier } from './sql-text.js';

/**
 * The caller's text and how offsets in what was parsed map back to it.
 *
 * The parser counts UTF-8 bytes; callers count UTF-16 units. Quotes put around a token before parsing
 * (`quoted`, byte offsets in the parsed text, ascending) are taken out again.
 */
export interface SourceText {
  readonly original: string;
  readonly quoted: readonly number[];
}

/** The position in the original text of byte `offset` of the parsed text. */
export function positionAt(source: SourceText, offset: number): Position {
  const bytes = offset - source.quoted.filter((q) => q < offset).length;
  return positionOfIndex(source.original, indexOfByte(source.original, bytes));
}

/** The UTF-16 index at which `bytes` UTF-8 bytes of `text` have passed, of which `seen` had at `index`. */
export function indexOfByte(text: string, bytes: number, index = 0, seen = 0): number {
  let [at, passed] = [index, seen];
  while (passed < bytes && at < text.length) {
    const width = widthAt(text, at);
    passed += utf8Length(text, at);
    at += width;
  }
  return at;
}

/** The UTF-8 bytes of `text` from UTF-16 index `from` up to `to`. */
export function bytesBetween(text: string, from: number, to: number): number {
  let bytes = 0;
  for (let at = from; at < to; at += widthAt(text, at)) bytes += utf8Length(text, at);
  return bytes;
}

/** The UTF-16 index behind the first `count` characters (code points) of `text`. */
export function indexOfCharacter(text: string, count: number): number {
  let at = 0;
  for (let i = 0; i < count && at < text.length; i++) at += widthAt(text, at);
  return at;
}

/** Number of characters (code points) of `text` before UTF-16 index `end`. */
export function charactersBefore(text: string, end: number): number {
  let count = 0;
  for (let at = 0; at < end; at += widthAt(text, at)) count++;
  return count;
}

/** The position of UTF-16 index `index` of `text`. */
export function positionOfIndex(text: string, index: number): Position {
  let line = 1;
  let start = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < index; at = text.indexOf('\n', start)) {
    line++;
    start = at + 1;
  }
  return Object.freeze({ offset: index, line, column: index - start + 1 });
}

/** UTF-16 units of the character at `at`. */
function widthAt(text: string, at: number): 1 | 2 {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
}

function utf8Length(text: string, at: number): number {
  const code = text.codePointAt(at) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** UTF-16 units; what is longer is no slip of the hand. A name of the grammar has as many bytes. */
const LONGEST_NAME = 64;

/** The name in `names` nearest to `name`, or null where none is near enough to be a slip of the hand. */
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

/** The nearest name, as SQL takes it: `"Employee"`. */
export function nearestIdentifier(name: string, names: Iterable<string>): string | null {
  const near = nearest(name, names);
  return near === null ? null : identifier(near);
}

/** The nearest name, quoted for use inside a literal: `TRAVERSE(target => 'Employee')`. */
export function nearestInLiteral(name: string, names: Iterable<string>): string | null {
  return nearest(name, names)?.replaceAll("'", "''") ?? null;
}

/** Rows of the distance matrix that are needed: the current one, and the two before it. */
const ROWS = Array.from({ length: 3 }, () => new Uint16Array(2 * LONGEST_NAME + 2));

/** Edits between two texts, a swap of neighbours counted as one, or `bound` where it takes at least that many. */
function editDistance(a: string, candidate: string, bound: number): number {
  if (Math.abs(a.length - candidate.length) >= bound) return bound;
  const b = candidate.toLowerCase();
  const width = b.length;
  if (Math.abs(a.length - width) >= bound) return bound; // some letters are longer in lower case
  let [before, row, next] = ROWS as [Uint16Array, Uint16Array, Uint16Array]; // three of them
  for (let j = 0; j <= width; j++) row[j] = j;
  let least = 0;
  for (let i = 1; i <= a.length; i++) {
    // Further from the diagonal every way takes `bound` edits already.
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
    // No way through two rows in succession gets cheaper again.
    if (least >= bound && lastLeast >= bound) return bound;
    [before, row, next] = [row, next, before];
  }
  return Math.min(row[width] ?? bound, bound);
}
