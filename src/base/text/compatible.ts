/**
 * What NFKC may join with the letter before it: marks, the vowels and last consonants of Hangul, also those of its
 * compatibility forms, and the half-width signs of voice of Katakana.
 */
const JOINED = String.raw`\p{M}\u1160-\u11ff\u3130-\u318f\ud7b0-\ud7ff\uff9e-\uffdc`;
const UNIT = new RegExp(`[^${JOINED}][${JOINED}]*|[${JOINED}]+`, 'gu');

/** A stretch of a text in UTF-16 units, the end not included. */
export interface TextSpan {
  readonly start: number;
  readonly end: number;
}

/** A text in Unicode's compatible form (NFKC), which knows where each stretch of it stood in the text as it was. */
export class CompatibleText {
  readonly text: string;
  readonly #from: string;
  /** Where the units begin, of which each is put into its form by itself: here, and there. Null where nothing changes. */
  #units: { readonly here: readonly number[]; readonly there: readonly number[] } | null = null;

  constructor(from: string) {
    this.#from = from;
    this.text = from.normalize('NFKC');
  }

  /** The least stretch of the text as it was that `stretch` of this one was made of. */
  before({ start, end }: TextSpan): TextSpan {
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

/** The last place in `ascending` whose number is no more than `most`. */
function lastUpTo(ascending: readonly number[], most: number): number {
  let [low, high] = [0, ascending.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((ascending[middle] ?? 0) <= most) low = middle;
    else high = middle - 1;
  }
  return low;
}
