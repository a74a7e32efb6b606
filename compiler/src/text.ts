import type { Position } from './errors.js';

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

/** The UTF-16 index at which `bytes` UTF-8 bytes of `text` have passed. */
export function indexOfByte(text: string, bytes: number): number {
  let seen = 0;
  let index = 0;
  for (const char of text) {
    if (seen >= bytes) break;
    seen += utf8Length(char);
    index += char.length;
  }
  return index;
}

/** The position of UTF-16 index `index` of `text`. */
export function positionOfIndex(text: string, index: number): Position {
  const before = text.slice(0, index);
  const line = before.split('\n').length;
  return Object.freeze({ offset: index, line, column: index - before.lastIndexOf('\n') });
}

function utf8Length(char: string): number {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** The name in `names` nearest to `name`, or null where none is near enough to be a slip of the hand. */
export function nearest(name: string, names: Iterable<string>): string | null {
  const wanted = name.toLowerCase();
  const limit = Math.max(1, Math.floor(wanted.length / 3));
  let best: string | null = null;
  let least = limit + 1;
  for (const candidate of names) {
    const distance = editDistance(wanted, candidate.toLowerCase(), least);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

/** Edits between two texts, a swap of neighbours counted as one, or `bound` where it takes at least that many. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? (before[j - 2] ?? bound) + 1 : bound;
      next.push(Math.min(change, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return Math.min(row[b.length] ?? bound, bound);
}
