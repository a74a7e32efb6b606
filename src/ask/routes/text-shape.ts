import type { ShapedText } from 'osl-compiler';

/*
 * Recognizes texts of a known shape by their bytes. The compiler's `shapeOf` defines shapes; this file shares no code
 * with it. A shape is created here only if `shapeOf` and the scan in this file found the same literals in a compiled
 * text. Another text has this shape only if everything between its literals is the same, byte for byte.
 */

/** The lexical class of a literal: string, int4, int8, or number with a decimal point. */
type LiteralCode = 's' | 'i' | 'l' | 'n';

/** Maximum number of literals; texts with more take the full path. */
const MAX_LITERALS = 64;
/** Maximum length of a text in bytes; longer ones take the full path. */
const MAX_LENGTH = 4_096;
/** Maximum number of digits with which every whole number fits into int8. */
const INT8_SAFE_DIGITS = 18;
const INT4_MAX = 2_147_483_647;

const QUOTE = 0x27;
const DOUBLE_QUOTE = 0x22;
const BACKSLASH = 0x5c;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** The byte that replaces a literal in the hash of a text. */
const MARK = 0x01;
const FNV_BASIS = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;

/** Bytes after which a digit starts a number: white space, operators and punctuation. */
const BEFORE_NUMBER: Uint8Array = tableOf(' \t\n\r~!@#^&|`?+-*/%<>=,()[];:');

function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const c of characters) table[c.charCodeAt(0)] = 1;
  return table;
}

/** Finds the literals of a text in one pass over its bytes. */
export class LiteralScan {
  count = 0;
  /** FNV-1a hash of the text with literals replaced by `MARK`. */
  hash = 0;
  /** Byte offsets of the literals' values, without the quotes of strings. */
  readonly starts = new Int32Array(MAX_LITERALS);
  readonly ends = new Int32Array(MAX_LITERALS);
  readonly classes: LiteralCode[] = [];

  /** Scans bytes [start, end). Returns false if a literal is unsupported or there are too many. */
  run(bytes: Uint8Array, start: number, end: number): boolean {
    this.count = 0;
    if (end - start > MAX_LENGTH) return false;
    let hash = FNV_BASIS;
    let previous = 0x20;
    for (let at = start; at < end; ) {
      const byte = bytes[at] ?? 0;
      if (byte === QUOTE || (byte >= ZERO && byte <= NINE && BEFORE_NUMBER[previous] === 1)) {
        const next = byte === QUOTE ? this.#string(bytes, at, end) : this.#number(bytes, at, end);
        if (next < 0) return false;
        hash = Math.imul(hash ^ MARK, FNV_PRIME);
        previous = bytes[next - 1] ?? 0;
        at = next;
        continue;
      }
      hash = Math.imul(hash ^ byte, FNV_PRIME);
      previous = byte;
      at++;
      if (byte === DOUBLE_QUOTE) {
        // Quoted identifiers contain no literals.
        for (let inside = 0; inside !== DOUBLE_QUOTE; at++) {
          if (at >= end) return false;
          inside = bytes[at] ?? 0;
          hash = Math.imul(hash ^ inside, FNV_PRIME);
        }
      }
    }
    this.hash = hash;
    return true;
  }

  /** Scans a string of printable ASCII without quotes or backslashes. Returns the offset after it, or −1. */
  #string(bytes: Uint8Array, quote: number, end: number): number {
    let at = quote + 1;
    for (; at < end; at++) {
      const byte = bytes[at] ?? 0;
      if (byte === QUOTE) break;
      if (byte < 0x20 || byte > 0x7e || byte === BACKSLASH) return -1;
    }
    if (at >= end || bytes[at + 1] === QUOTE) return -1;
    return this.#addLiteral('s', quote + 1, at) ? at + 1 : -1;
  }

  /** Scans digits without leading zeros, optionally with a decimal point. Returns the offset after them, or −1. */
  #number(bytes: Uint8Array, start: number, end: number): number {
    let at = digitsEnd(bytes, start, end);
    const whole = at - start;
    if ((whole > 1 && bytes[start] === ZERO) || whole > INT8_SAFE_DIGITS) return -1;
    let kind: LiteralCode = whole < 10 ? 'i' : 'l';
    if (whole === 10 && wholeNumber(bytes, start, at) <= INT4_MAX) kind = 'i';
    if (bytes[at] === POINT && at < end) {
      const fraction = digitsEnd(bytes, at + 1, end);
      if (fraction === at + 1 || fraction - at > INT8_SAFE_DIGITS) return -1;
      kind = 'n';
      at = fraction;
    }
    return this.#addLiteral(kind, start, at) ? at : -1;
  }

  #addLiteral(kind: LiteralCode, start: number, end: number): boolean {
    const i = this.count;
    if (i === MAX_LITERALS) return false;
    this.starts[i] = start;
    this.ends[i] = end;
    this.classes[i] = kind;
    this.count = i + 1;
    return true;
  }
}

function digitsEnd(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  while (at < end && (bytes[at] ?? 0) >= ZERO && (bytes[at] ?? 0) <= NINE) at++;
  return at;
}

function wholeNumber(bytes: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + (bytes[at] ?? 0) - ZERO;
  return value;
}

/** The shape of a compiled text: the bytes between its literals, and which of its literals are equal. */
export class TextShape {
  readonly hash: number;
  readonly #between: readonly Uint8Array[];
  readonly #classes: readonly LiteralCode[];
  /** For each literal, the index of the first one with the same value. */
  readonly #firsts: readonly number[];

  private constructor(
    hash: number,
    between: readonly Uint8Array[],
    classes: readonly LiteralCode[],
    firsts: readonly number[],
  ) {
    this.hash = hash;
    this.#between = between;
    this.#classes = classes;
    this.#firsts = firsts;
  }

  /** Returns the shape of a text, given the result of `shapeOf`; null if the two scans differ. */
  static create(bytes: Buffer, { shape, literals }: ShapedText): TextShape | null {
    const scan = new LiteralScan();
    if (!scan.run(bytes, 0, bytes.length) || scan.count !== literals.length) return null;
    const classes = [...shape.matchAll(/\u0001([a-z])/g)].map(([, letter]) => letter);
    const between: Uint8Array[] = [];
    let from = 0;
    for (const [i, { start, value }] of literals.entries()) {
      const [at, end, kind] = [scan.starts[i] ?? -1, scan.ends[i] ?? -1, scan.classes[i]];
      if (kind !== classes[i] || (kind === 's' ? at - 1 : at) !== start) return null;
      if (bytes.toString('latin1', at, end) !== value) return null;
      between.push(Uint8Array.from(bytes.subarray(from, at)));
      from = end;
    }
    between.push(Uint8Array.from(bytes.subarray(from)));
    const values = literals.map((l) => l.value);
    return new TextShape(
      scan.hash,
      between,
      scan.classes.slice(0, scan.count),
      values.map((value) => values.indexOf(value)),
    );
  }

  /** Returns the literals in bytes [start, end), already scanned by `scan`; null if the text has another shape. */
  valuesIn(bytes: Buffer, start: number, end: number, scan: LiteralScan): readonly string[] | null {
    const classes = this.#classes;
    if (scan.count !== classes.length) return null;
    let from = start;
    for (let i = 0; i < classes.length; i++) {
      const at = scan.starts[i] ?? 0;
      if (scan.classes[i] !== classes[i] || !this.#isBetween(i, bytes, from, at)) return null;
      from = scan.ends[i] ?? 0;
    }
    if (!this.#isBetween(classes.length, bytes, from, end)) return null;
    const values: string[] = [];
    for (let i = 0; i < classes.length; i++)
      values.push(bytes.toString('latin1', scan.starts[i], scan.ends[i]));
    for (let i = 1; i < values.length; i++)
      if (values.indexOf(values[i] ?? '') !== this.#firsts[i]) return null;
    return values;
  }

  #isBetween(index: number, bytes: Uint8Array, start: number, end: number): boolean {
    const expected = this.#between[index];
    if (expected === undefined || end - start !== expected.length) return false;
    for (let i = 0; i < expected.length; i++) if (bytes[start + i] !== expected[i]) return false;
    return true;
  }
}
