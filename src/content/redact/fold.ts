/**
 * A text folded for comparison, with offsets into the original. Folding equates spellings that people use
 * interchangeably: case, Unicode compatibility forms (NFKC), invisible characters, runs of white space, apostrophes,
 * dashes, digits of all scripts, accents (Latin, Greek, Cyrillic), vowel points (Arabic, Hebrew), ligatures and their
 * letters, and Arabic letters that share a shape.
 */
export interface FoldedText {
  readonly text: string;
  /** For each folded code unit, the UTF-16 offset of the original character that it comes from. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/**
 * A character with its marks, including half-width kana marks, and any invisible characters in between. Hangul letters
 * that may compose stay together.
 */
const CLUSTER =
  /[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+\p{M}*|[\s\S](?:[\p{M}\uff9e\uff9f]|\p{Default_Ignorable_Code_Point})*/uy;
/**
 * Default-ignorable characters, which can hide a word from a search: soft hyphens, zero-width characters and direction
 * marks.
 */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;

export function fold(text: string): FoldedText {
  const out = new FoldedTextBuilder(text.length);
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at);
    // An ASCII character that is followed by another ASCII character has no combining mark.
    if (isAscii(unit) && (at + 1 === text.length || isAscii(text.charCodeAt(at + 1)))) {
      out.add(lowerAscii(unit), at, at + 1);
      at++;
      continue;
    }
    CLUSTER.lastIndex = at;
    const [cluster = text.charAt(at)] = CLUSTER.exec(text) ?? [];
    const folded = foldCluster(cluster);
    for (let i = 0; i < folded.length; i++) out.add(folded.charCodeAt(i), at, at + cluster.length);
    at += cluster.length;
  }
  return out.done();
}

function isAscii(unit: number): boolean {
  return unit > 0 && unit < 0x80;
}

function lowerAscii(unit: number): number {
  if (unit === BACKTICK) return APOSTROPHE;
  return unit >= 0x41 && unit <= 0x5a ? unit + 0x20 : unit;
}

export function foldText(text: string): string {
  return fold(text).text;
}

/** Folds a cluster, converting to upper case first, since only that equates the three sigmas, and ß with ss. */
function foldCluster(cluster: string): string {
  const plain = cluster.replace(INVISIBLE, '').normalize('NFKC').replace(INVISIBLE, '');
  const lower = plain.toUpperCase().toLowerCase().normalize('NFKC');
  return withoutAccents(lower).replace(ALIKE, (c) => LETTERS.get(c) ?? digitOf(c));
}

/**
 * Scripts in which marks are accents, so that a word without them is still the same word. In other scripts they
 * distinguish letters.
 */
const ACCENTED =
  /[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Arabic}\p{Script=Hebrew}]\p{M}/u;

function withoutAccents(text: string): string {
  const decomposed = text.normalize('NFD');
  return ACCENTED.test(decomposed) ? decomposed.replace(/\p{M}+/gu, '') : text;
}

/** Equivalent characters, in lower case; `from` is folded to `to`. */
const SAME: readonly (readonly [to: string, from: string])[] = [
  ["'", '`´‘’‛′ʹʻʼʽˈ՚׳＇᾽᾿ꞌ'],
  ['-', '‐‑‒–—―−⁃﹘﹣－᠆־'],
  ['σ', 'ς'],
  // The lower case of the capital letter, whose upper case is not SS.
  ['ss', 'ß'],
  ['ae', 'æ'],
  ['oe', 'œ'],
  ['o', 'ø'],
  ['l', 'ł'],
  ['d', 'đð'],
  ['th', 'þ'],
  ['h', 'ħ'],
  ['i', 'ı'],
  // The tatweel, a stroke that only lengthens a word, is removed.
  ['', 'ـ'],
  ['ي', 'یى'],
  ['ك', 'ک'],
  ['ه', 'ة'],
];

const LETTERS: ReadonlyMap<string, string> = new Map(
  SAME.flatMap(([to, from]) => [...from].map((c) => [c, to] as const)),
);

const ALIKE = new RegExp(`[${[...LETTERS.keys()].join('')}]|(?![0-9])\\p{Nd}`, 'gu');

/** Value of a decimal digit in any script. Each script has its ten digits in sequence, starting from zero. */
export function digitOf(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  let zero = code;
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String(code - zero);
}

class FoldedTextBuilder {
  #units: Uint16Array;
  #starts: Int32Array;
  #ends: Int32Array;
  #length = 0;

  constructor(expected: number) {
    this.#units = new Uint16Array(expected);
    this.#starts = new Int32Array(expected);
    this.#ends = new Int32Array(expected);
  }

  add(unit: number, start: number, end: number): void {
    const space = isSpace(unit);
    const at = this.#length;
    if (space && at > 0 && this.#units[at - 1] === SPACE) return;
    if (at === this.#units.length) this.#grow();
    this.#units[at] = space ? SPACE : unit;
    this.#starts[at] = start;
    this.#ends[at] = end;
    this.#length++;
  }

  #grow(): void {
    const size = this.#units.length * 2 + 32;
    const units = new Uint16Array(size);
    units.set(this.#units);
    this.#units = units;
    const [starts, ends] = [new Int32Array(size), new Int32Array(size)];
    starts.set(this.#starts);
    ends.set(this.#ends);
    [this.#starts, this.#ends] = [starts, ends];
  }

  done(): FoldedText {
    const text = Buffer.from(this.#units.buffer, 0, this.#length * 2).toString('utf16le');
    return {
      text,
      starts: this.#starts.subarray(0, this.#length),
      ends: this.#ends.subarray(0, this.#length),
    };
  }
}

const SPACE = 0x20;
const APOSTROPHE = 0x27;
const BACKTICK = 0x60;

function isSpace(unit: number): boolean {
  if (unit <= 0x7f) return unit === SPACE || (unit >= 0x09 && unit <= 0x0d);
  return unit === 0x85 || /\s/.test(String.fromCharCode(unit));
}
