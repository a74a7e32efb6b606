/** Half-open range within a text, in UTF-16 code units. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** Sizes of chunks, in UTF-16 code units. */
export interface ChunkSizes {
  readonly maxChars: number;
  readonly overlapChars: number;
  readonly by?: ChunkedBy;
}

/**
 * Positions at which documents are split. `structure`: at headings, paragraphs, sentences, then words. `heading`: the
 * same, but every heading starts a new passage. `page`: the same, but every form feed starts a new passage. `sentence`:
 * at sentences, then words. `fixed`: at words, with passages as long as allowed.
 */
export type ChunkedBy = 'structure' | 'heading' | 'page' | 'sentence' | 'fixed';

/** Breaks at which a chunk may end, best kind first. A better kind is preferred wherever it occurs in the window. */
const BREAKS: readonly RegExp[] = [
  /\n(?=#{1,6} )/g,
  /\n[ \t]*\n/g,
  /[.!?…]["')\]]*\s|[。！？]|\n(?=[ \t]*(?:[-*+|>]|\d+[.)]) ?)/g,
  /\s/g,
];

/** Minimum fill ratio of a chunk that ends at a break. It does not apply if all breaks in the window come earlier. */
const LEAST_FILL = 0.5;

/**
 * Cuts `text` into spans of at most `maxChars`, preferably at headings, then paragraphs, sentences or words. Spans
 * have no leading or trailing white space; adjacent spans overlap by whole sentences or words.
 *
 * @param mayCut true if a chunk starting at `start` may be cut between two letters at `at`, which is necessary for
 * words longer than a chunk
 */
export function chunkSpans(
  text: string,
  chunking: ChunkSizes,
  mayCut: (at: number, start: number) => boolean = () => true,
): readonly TextSpan[] {
  const { by = 'structure' } = chunking;
  if (by !== 'heading' && by !== 'page') return spansIn(text, chunking, breaksOf(by), mayCut);
  const sections = by === 'page' ? pagesOf(text) : sectionsOf(text);
  return sections.flatMap(({ start, end }) =>
    spansIn(text.slice(start, end), chunking, BREAKS, (at, from) => mayCut(start + at, start + from)).map(
      (span) => ({ start: start + span.start, end: start + span.end }),
    ),
  );
}

function breaksOf(by: 'structure' | 'sentence' | 'fixed'): readonly RegExp[] {
  switch (by) {
    case 'structure':
      return BREAKS;
    case 'sentence':
      return BREAKS.slice(2);
    case 'fixed':
      return BREAKS.slice(3);
  }
}

const FENCE = /^ {0,3}(```|~~~)/;
const HEADING = /^ {0,3}#{1,6}(?: |$)/;

function pagesOf(text: string): readonly TextSpan[] {
  let start = 0;
  return text.split('\f').map((page) => {
    const span = { start, end: start + page.length };
    start = span.end + 1;
    return span;
  });
}

/** Returns the sections, which begin at headings. Lines in code blocks that look like headings are ignored. */
function sectionsOf(text: string): readonly TextSpan[] {
  const sections: TextSpan[] = [];
  let [start, at, fence] = [0, 0, ''];
  for (const line of text.split('\n')) {
    const mark = FENCE.exec(line)?.[1] ?? '';
    if (mark !== '' && (fence === '' || fence === mark)) fence = fence === '' ? mark : '';
    else if (fence === '' && at > start && HEADING.test(line)) {
      sections.push({ start, end: at });
      start = at;
    }
    at += line.length + 1;
  }
  return [...sections, { start, end: text.length }];
}

function spansIn(
  text: string,
  { maxChars, overlapChars }: ChunkSizes,
  breaks: readonly RegExp[],
  mayCut: (at: number, start: number) => boolean,
): readonly TextSpan[] {
  const spans: TextSpan[] = [];
  let start = skipSpace(text, 0);
  while (start < text.length) {
    const end = text.length - start <= maxChars ? text.length : endOf(text, start, maxChars, breaks, mayCut);
    spans.push({ start, end: trimEnd(text, start, end) });
    if (skipSpace(text, end) >= text.length) break;
    start = nextStart(text, start, end, overlapChars, breaks);
  }
  return spans;
}

function endOf(
  text: string,
  start: number,
  maxChars: number,
  breaks: readonly RegExp[],
  mayCut: (at: number, start: number) => boolean,
): number {
  const limit = start + maxChars;
  const least = start + Math.floor(maxChars * LEAST_FILL);
  const window = text.slice(start, limit);
  for (const kind of breaks) {
    const at = lastBreak(window, kind);
    if (at > least - start) return start + at;
  }
  const space = lastBreak(window, /\s/g);
  return space > 0 ? start + space : cutInside(text, start, limit, mayCut);
}

/** Returns the end of the last match of `kind` in `window`; 0 if there is no match. */
function lastBreak(window: string, kind: RegExp): number {
  let last = 0;
  for (const match of window.matchAll(kind)) last = match.index + match[0].length;
  return last;
}

/** Cuts a window that has no white space: next to a non-letter if possible, otherwise inside a word. */
function cutInside(
  text: string,
  start: number,
  limit: number,
  mayCut: (at: number, start: number) => boolean,
): number {
  for (let at = limit; at > start; at--) if (!insideWord(text, at)) return at;
  for (let at = limit; at > start; at--) if (!splitsCharacter(text, at) && mayCut(at, start)) return at;
  return limit;
}

const WORD_PART = /[\p{L}\p{N}\p{M}\p{Cf}\p{Cs}]/u;

/** True if there is a letter, digit, mark or invisible character on both sides of `at`. */
function insideWord(text: string, at: number): boolean {
  return WORD_PART.test(text.charAt(at - 1)) && WORD_PART.test(text.charAt(at));
}

function splitsCharacter(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return (unit >= 0xdc00 && unit < 0xe000) || /[\p{M}\p{Cf}]/u.test(text.charAt(at));
}

/** Returns the start of the next chunk: the first sentence that begins within the overlap, or else the first word. */
function nextStart(
  text: string,
  start: number,
  end: number,
  overlapChars: number,
  breaks: readonly RegExp[],
): number {
  const after = skipSpace(text, end);
  const from = Math.max(start + 1, end - overlapChars);
  if (from >= end) return after;
  const window = text.slice(from, end);
  for (const kind of breaks === BREAKS ? breaks.slice(1) : breaks) {
    const first = window.search(new RegExp(kind.source, kind.flags.replace('g', '')));
    if (first < 0) continue;
    const match = window.slice(first).match(new RegExp(kind.source));
    const at = skipSpace(text, from + first + (match?.[0].length ?? 1));
    if (at < end) return at;
  }
  return after;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && isSpace(text, at)) at++;
  return at;
}

function trimEnd(text: string, start: number, end: number): number {
  let at = end;
  while (at > start && isSpace(text, at - 1)) at--;
  return at;
}

function isSpace(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}

/**
 * Converts UTF-16 offsets in a text to code point offsets, which citations use, as do `substr` in Postgres and slices
 * in Python. Offsets in ascending order are converted without rescanning the text from its start.
 */
export class CodePoints {
  readonly #text: string;
  #unit = 0;
  #point = 0;

  constructor(text: string) {
    this.#text = text;
  }

  at(unit: number): number {
    if (unit < this.#unit) [this.#unit, this.#point] = [0, 0];
    this.#point += countCodePoints(this.#text, this.#unit, unit);
    this.#unit = unit;
    return this.#point;
  }

  span({ start, end }: TextSpan): TextSpan {
    const from = this.at(start);
    return { start: from, end: from + countCodePoints(this.#text, start, end) };
  }
}

/** Number of code points between two UTF-16 offsets; the second half of a surrogate pair is not counted. */
export function countCodePoints(text: string, from = 0, to = text.length): number {
  let count = 0;
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i);
    const halved = unit >= 0xdc00 && unit < 0xe000 && i > from && isHigh(text.charCodeAt(i - 1));
    if (!halved) count++;
  }
  return count;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00;
}
