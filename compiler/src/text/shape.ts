/** A literal of a plain text. */
export interface PlainLiteral {
  /** Value as the parser gives it: quotes removed, an int4 without leading zeros, any other number as written. */
  readonly value: string;
  /** UTF-8 byte offset of the token. */
  readonly start: number;
  /** Byte offset of a `-` right before a number, which the grammar may make part of it; -1 where there is none. */
  readonly sign: number;
}

/** A text as what stays the same and what varies. */
export interface ShapedText {
  /**
   * The text with each literal replaced by its lexical class, and which literals are equal: texts of one shape have
   * the same syntax tree but for the values of its constants.
   */
  readonly shape: string;
  readonly literals: readonly PlainLiteral[];
}

/** UTF-16 units; longer texts are parsed each time. */
const MAX_LENGTH = 16_384;
const MAX_LITERALS = 256;

/** Lexical classes: the parser and the binder treat all literals of one class alike. */
type LiteralClass = 's' | 'i' | 'l' | 'm' | 'n';

// No plain text has a control character, so neither mark can occur in what is kept of it.
const LITERAL_MARK = '\u0001';
const EQUAL_MARK = '\u0002';

/**
 * Splits a text of plain tokens only: ASCII identifiers, numbers, simple strings, `$n`, operators. Null for any other:
 * comments, escape and dollar strings, backslashes, doubled quotes in identifiers, strings in several parts.
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

/** Token kind that each ASCII character can begin; 0 if no plain text has it outside of strings. */
const KINDS: Uint8Array = kinds();

function kinds(): Uint8Array {
  const table = new Uint8Array(128);
  const mark = (chars: string, kind: number): void => {
    for (const c of chars) table[c.charCodeAt(0)] = kind;
  };
  mark(' \t\n\r', SPACE);
  mark('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_', WORD);
  mark('0123456789', DIGIT);
  mark("'", QUOTE);
  mark('"', IDENTIFIER_QUOTE);
  mark('$', DOLLAR);
  mark('.', DOT);
  mark('~!@#^&|`?+-*/%<>=,()[];:', OPERATOR);
  return table;
}

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
  /** Bytes minus UTF-16 units of what has been read. */
  #extra = 0;
  /** Byte offset of the last token, if it is a `-`. */
  #minus = -1;
  #kept = 0;
  #shape = '';

  constructor(text: string) {
    this.#text = text;
  }

  /** True if the whole text is plain. */
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
    return code < 128 ? (KINDS[code] ?? OTHER) : OTHER; // NaN at the end compares false
  }

  /** An identifier or key word. A quote right behind it would make it the prefix of another kind of string. */
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

  /** `"…"` of printable ASCII. */
  #identifier(): boolean {
    const text = this.#text;
    let at = this.#at + 1;
    for (let code = text.charCodeAt(at); code !== DOUBLE_QUOTE_CODE; code = text.charCodeAt(++at)) {
      if (!(code >= 0x20 && code < 0x7f) || code === BACKSLASH) return false; // or past the end
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

  /** The end of `e±9…` at `from`, or `from` where there is none. */
  #exponent(from: number): number {
    if ((this.#text.charCodeAt(from) | 0x20) !== 0x65) return from;
    const sign = this.#text[from + 1];
    const digits = sign === '+' || sign === '-' ? from + 2 : from + 1;
    const end = this.#digits(digits);
    return end === digits ? from : end;
  }

  /** Numbers that run into a word or another dot are other tokens, or none. */
  #endsNumber(end: number): boolean {
    const kind = this.#kindAt(end);
    return end >= this.#text.length || kind === SPACE || kind === OPERATOR;
  }

  /** `'…'`. A string behind it, on a line of its own, would be part of it. */
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

  /** Takes the literal that ends at `end`; the text before it stays in the shape. */
  #literal(kind: LiteralClass, value: string, end: number, sign: number): void {
    const at = this.#at;
    this.literals.push({ value, start: at + this.#extra, sign });
    this.#shape += this.#text.slice(this.#kept, at) + LITERAL_MARK + kind;
    this.#kept = end;
    this.#at = end;
    this.#minus = -1;
  }
}

/** UTF-8 bytes of a UTF-16 unit inside a string; 0 for what makes it not plain: NUL, backslash, surrogates, the end. */
function bytesOf(code: number): number {
  if (code < 0x80)
    return (code < 0x20 && code !== LF && code !== 0x0d && code !== 0x09) || code === BACKSLASH ? 0 : 1;
  if (code < 0x800) return 2;
  return code < 0xd800 || (code > 0xdfff && code <= 0xffff) ? 3 : 0;
}

const INT4_MAX = 2_147_483_647;
const INT8_EDGE = 9_223_372_036_854_775_808n;

/** The class of whole digits. 2^63 has one of its own: it is an int8 with a minus before it, and no int8 without. */
function integerClass(digits: string): LiteralClass {
  if (digits.length < 10 || Number(digits) <= INT4_MAX) return 'i';
  const value = BigInt(digits);
  if (value === INT8_EDGE) return 'm';
  return value < INT8_EDGE ? 'l' : 'n';
}

/** Indices of literals that equal an earlier one. Equal literals share a parameter, so this is part of the shape. */
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
