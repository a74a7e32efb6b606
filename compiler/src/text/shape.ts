import { kindsByCharacter } from './text.js';

export interface PlainLiteral {
  /** The unquoted value. Leading zeros are removed from an int4; other numbers are kept as written. */
  readonly value: string;
  /** UTF-8 byte offset of the token. */
  readonly start: number;
  /** Byte offset of a `-` directly before a number, which the grammar may treat as part of it; -1 if there is none. */
  readonly sign: number;
}

export interface ShapedText {
  /**
   * The text with each literal replaced by its lexical class, followed by a list of the literals that are equal. Texts
   * of the same shape have the same syntax tree except for the values of constants.
   */
  readonly shape: string;
  readonly literals: readonly PlainLiteral[];
}

/** Maximum length in UTF-16 code units. Longer texts are parsed each time. */
const MAX_LENGTH = 16_384;
const MAX_LITERALS = 256;

/** Lexical class: string, int4, int8, 2^63, other number. Literals of a class are parsed and bound alike. */
type LiteralClass = 's' | 'i' | 'l' | 'm' | 'n';

// Plain texts contain no control characters, so these marks cannot collide with them.
const LITERAL_MARK = '\u0001';
const EQUAL_MARK = '\u0002';

/**
 * Splits a text that consists of plain tokens only: ASCII identifiers, numbers, simple strings, `$n`, operators.
 * Returns null if the text contains anything else: comments, escape or dollar-quoted strings, backslashes, doubled
 * quotes in identifiers, continued strings.
 */
export function shapeOf(text: string): ShapedText | null {
  if (text.length > MAX_LENGTH) return null;
  const scanner = new Scanner(text);
  return scanner.run() ? { shape: scanner.shape(), literals: scanner.literals } : null;
}

const OTHER = 0;
const SPACE = 1;
const WORD = 2;
const DIGIT = 3;
const QUOTE = 4;
const IDENTIFIER_QUOTE = 5;
const DOLLAR = 6;
const DOT = 7;
const OPERATOR = 8;

/** Token kind by first ASCII character; 0 for characters that are not plain outside of strings. */
const KINDS = kindsByCharacter([
  [' \t\n\r', SPACE],
  ['abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_', WORD],
  ['0123456789', DIGIT],
  ["'", QUOTE],
  ['"', IDENTIFIER_QUOTE],
  ['$', DOLLAR],
  ['.', DOT],
  ['~!@#^&|`?+-*/%<>=,()[];:', OPERATOR],
]);

const MINUS = 0x2d;
const SLASH = 0x2f;
const STAR = 0x2a;
const AMPERSAND = 0x26;
const QUOTE_CODE = 0x27;
const DOUBLE_QUOTE_CODE = 0x22;
const BACKSLASH = 0x5c;
const DOT_CODE = 0x2e;
const LF = 0x0a;

class Scanner {
  readonly literals: PlainLiteral[] = [];
  readonly #text: string;
  #at = 0;
  /** Number of UTF-8 bytes minus number of UTF-16 code units, for the text read so far. */
  #extra = 0;
  /** Byte offset of the last token if it is a `-`; otherwise -1. */
  #minus = -1;
  #kept = 0;
  #shape = '';

  constructor(text: string) {
    this.#text = text;
  }

  run(): boolean {
    const text = this.#text;
    while (this.#at < text.length) {
      const code = text.charCodeAt(this.#at);
      if (!this.#token(code, code < 128 ? (KINDS[code] ?? OTHER) : OTHER)) return false;
    }
    return this.literals.length <= MAX_LITERALS;
  }

  shape(): string {
    return this.#shape + this.#text.slice(this.#kept) + equalities(this.literals);
  }

  #token(code: number, kind: number): boolean {
    switch (kind) {
      case SPACE:
        this.#at++;
        return true;
      case WORD:
        return this.#word();
      case DIGIT:
        return this.#number();
      case DOT:
        return this.#dot();
      case QUOTE:
        return this.#string();
      case IDENTIFIER_QUOTE:
        return this.#identifier();
      case DOLLAR:
        return this.#parameter();
      case OPERATOR:
        return this.#operator(code);
      default:
        return false;
    }
  }

  #kindAt(index: number): number {
    const code = this.#text.charCodeAt(index);
    return code < 128 ? (KINDS[code] ?? OTHER) : OTHER; // NaN past the end
  }

  /** Reads an identifier or keyword. Returns false if a quote follows: the word is then a string prefix. */
  #word(): boolean {
    let at = this.#at + 1;
    for (let kind = this.#kindAt(at); kind === WORD || kind === DIGIT || kind === DOLLAR; )
      kind = this.#kindAt(++at);
    this.#at = at;
    this.#minus = -1;
    return this.#text.charCodeAt(at) !== QUOTE_CODE;
  }

  #operator(code: number): boolean {
    const next = this.#text.charCodeAt(this.#at + 1);
    if ((code === MINUS && next === MINUS) || (code === SLASH && next === STAR)) return false;
    if (code === AMPERSAND && (next === QUOTE_CODE || next === DOUBLE_QUOTE_CODE)) return false;
    this.#minus = code === MINUS ? this.#at + this.#extra : -1;
    this.#at++;
    return true;
  }

  #dot(): boolean {
    if (this.#kindAt(this.#at + 1) === DIGIT) return this.#number();
    this.#at++;
    this.#minus = -1;
    return this.#text.charCodeAt(this.#at) !== DOT_CODE;
  }

  #parameter(): boolean {
    const end = this.#digits(this.#at + 1);
    const digits = end - this.#at - 1;
    if (digits === 0 || digits > 9 || !this.#endsNumber(end)) return false;
    this.#at = end;
    this.#minus = -1;
    return true;
  }

  /** Reads a quoted identifier of printable ASCII characters. */
  #identifier(): boolean {
    const text = this.#text;
    let at = this.#at + 1;
    for (let code = text.charCodeAt(at); code !== DOUBLE_QUOTE_CODE; code = text.charCodeAt(++at)) {
      if (!(code >= 0x20 && code < 0x7f) || code === BACKSLASH) return false; // NaN past the end
    }
    if (at === this.#at + 1 || text.charCodeAt(at + 1) === DOUBLE_QUOTE_CODE) return false;
    this.#at = at + 1;
    this.#minus = -1;
    return true;
  }

  #number(): boolean {
    const start = this.#at;
    let end = this.#digits(start);
    let whole = true;
    if (this.#text.charCodeAt(end) === DOT_CODE) {
      whole = false;
      end = this.#digits(end + 1);
    }
    const exponent = this.#exponent(end);
    if (exponent > end) whole = false;
    end = exponent;
    if (!this.#endsNumber(end)) return false;
    const written = this.#text.slice(start, end);
    const kind = whole ? integerClass(written) : 'n';
    this.#literal(kind, kind === 'i' ? String(Number(written)) : written, end, this.#minus);
    return true;
  }

  #digits(from: number): number {
    let at = from;
    while (this.#kindAt(at) === DIGIT) at++;
    return at;
  }

  #exponent(from: number): number {
    if ((this.#text.charCodeAt(from) | 0x20) !== 0x65) return from;
    const sign = this.#text[from + 1];
    const digits = sign === '+' || sign === '-' ? from + 2 : from + 1;
    const end = this.#digits(digits);
    return end === digits ? from : end;
  }

  /** True if a number ends at `end`: only white space, an operator or the end of the text may follow. */
  #endsNumber(end: number): boolean {
    const kind = this.#kindAt(end);
    return end >= this.#text.length || kind === SPACE || kind === OPERATOR;
  }

  /** Reads a string literal. Returns false if another string follows, which could be a continuation. */
  #string(): boolean {
    const text = this.#text;
    let at = this.#at + 1;
    let value = '';
    let from = at;
    let extra = 0;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === QUOTE_CODE) {
        if (text.charCodeAt(at + 1) !== QUOTE_CODE) break;
        value += text.slice(from, at + 1);
        at += 2;
        from = at;
        continue;
      }
      const bytes = bytesOf(code);
      if (bytes === 0) return false;
      extra += bytes - 1;
      at++;
    }
    value += text.slice(from, at);
    if (this.#isContinued(at + 1)) return false;
    this.#literal('s', value, at + 1, -1);
    this.#extra += extra;
    return true;
  }

  #isContinued(from: number): boolean {
    let at = from;
    while (this.#kindAt(at) === SPACE) at++;
    return this.#text.charCodeAt(at) === QUOTE_CODE;
  }

  #literal(kind: LiteralClass, value: string, end: number, sign: number): void {
    const at = this.#at;
    this.literals.push({ value, start: at + this.#extra, sign });
    this.#shape += this.#text.slice(this.#kept, at) + LITERAL_MARK + kind;
    this.#kept = end;
    this.#at = end;
    this.#minus = -1;
  }
}

/**
 * Returns the number of UTF-8 bytes of a UTF-16 code unit inside a string; 0 if it is not plain: a control character,
 * backslash, surrogate, or the end of the text.
 */
function bytesOf(code: number): number {
  if (code < 0x80)
    return (code < 0x20 && code !== LF && code !== 0x0d && code !== 0x09) || code === BACKSLASH ? 0 : 1;
  if (code < 0x800) return 2;
  return code < 0xd800 || (code > 0xdfff && code <= 0xffff) ? 3 : 0;
}

const INT4_MAX = 2_147_483_647;
const INT8_EDGE = 9_223_372_036_854_775_808n;

/** Returns the class of an integer. 2^63 has its own class because it is an int8 only if a minus precedes it. */
function integerClass(digits: string): LiteralClass {
  if (digits.length < 10 || Number(digits) <= INT4_MAX) return 'i';
  const value = BigInt(digits);
  if (value === INT8_EDGE) return 'm';
  return value < INT8_EDGE ? 'l' : 'n';
}

/** Encodes which literals equal an earlier one. This is part of the shape because equal literals share a parameter. */
function equalities(literals: readonly PlainLiteral[]): string {
  const first = new Map<string, number>();
  let text = '';
  for (const [i, { value }] of literals.entries()) {
    const before = first.get(value);
    if (before === undefined) first.set(value, i);
    else text += `${EQUAL_MARK}${i}=${before}`;
  }
  return text;
}
