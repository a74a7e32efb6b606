import type { Span } from './chunk.js';

/**
 * Converts UTF-16 offsets in a text to code points, the unit of citations, which `substr` in Postgres and slices in
 * Python also use. If the `start`s are ascending, one pass over the text is enough.
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

  span({ start, end }: Span): Span {
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

/** The part of `text` between two code point offsets. */
export function sliceCodePoints(text: string, start: number, end: number): string {
  return [...text].slice(start, end).join('');
}
