import { type Position, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import { positionOfIndex } from './text.js';

/**
 * A first look at a text, before the parser's: it takes a time that is linear in the length of the text, whatever the
 * text says, where the parser's own scanner does not (operators and comments in long runs are scanned again and again).
 *
 * It need not agree with the parser in every byte: where the two differ a text is refused that might have been parsed, or
 * is given to the parser, which judges it.
 */
export interface Lexical {
  /** UTF-16 offsets of each token: where it begins, then where it ends. Of a long IN list its first item is one. */
  readonly bounds: readonly number[];
  /** The long IN lists of plain values, in order. */
  readonly lists: readonly PlainList[];
  /** The comments, in order: those between the same two tokens together. */
  readonly comments: readonly Comments[];
}

/** Comments between two tokens, from the start of the first to the end of the last. */
export interface Comments {
  /** UTF-16 offsets. */
  readonly start: number;
  readonly end: number;
  /**
   * An equivalent for the grammar: space, or whatever keeps the texts around it apart, or joins them. A comment that
   * does not end stays one.
   */
  readonly mark: '' | '\n' | '/**/' | '/*';
}

/** The items of an IN list that are all of one plain kind: whole numbers, or strings without escapes. */
export interface PlainList {
  /** For numbers, the type that holds them all; null for strings. */
  readonly type: 'int4' | 'int8' | null;
  /** UTF-16 offsets of the first item's beginning and end, and of the end of the last. */
  readonly start: number;
  readonly firstEnd: number;
  readonly end: number;
  /** Values as the grammar gives them: quotes removed, a minus before the digits. */
  readonly items: readonly string[];
}

/** Items from which on a list is read here, and is one token to the parser. Shorter ones may be part of a shape. */
const LONG_LIST = 257;

/** A name of the grammar holds so many bytes; so does an operator, and longer ones are no operators. */
const LONGEST_OPERATOR = 63;

const OTHER = 0;
const SPACE = 1;
const WORD = 2;
const DIGIT = 3;
const OPERATOR = 4;
const OPEN = 5;
const CLOSE = 6;
const QUOTE = 7;
const NAME_QUOTE = 8;
const DOLLAR = 9;

/** Token kind that each ASCII character begins; any other character is part of a word. */
const KINDS: Uint8Array = kinds();

function kinds(): Uint8Array {
  const table = new Uint8Array(128);
  const mark = (chars: string, kind: number): void => {
    for (const c of chars) table[c.charCodeAt(0)] = kind;
  };
  mark(' \t\n\r\f\v', SPACE);
  mark('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_', WORD);
  mark('0123456789', DIGIT);
  mark('~!@#^&|`?+-*/%<>=', OPERATOR);
  mark('([', OPEN);
  mark(')]', CLOSE);
  mark("'", QUOTE);
  mark('"', NAME_QUOTE);
  mark('$', DOLLAR);
  return table;
}

const LF = 0x0a;
const CR = 0x0d;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const CLOSING = 0x29;
const MINUS = 0x2d;
const SLASH = 0x2f;
const STAR = 0x2a;
const DOT = 0x2e;
const QUOTE_CODE = 0x27;

/** Measures `text`. @throws QueryError E0511 where it is beyond what a statement may have */
export function measure(text: string): Lexical {
  return new LexicalReader(text).run();
}

class LexicalReader {
  readonly #text: string;
  readonly #lists: PlainList[] = [];
  readonly #comments: Comments[] = [];
  readonly #bounds: number[] = [];
  #at = 0;
  #depth = 0;
  #listed = 0;
  #parameters = 0;
  /** The long list right after this place, after the bracket that was read last. */
  #list: PlainList | null = null;
  /** True if the last token is the word IN. */
  #afterIn = false;
  /** True if the last token is the word E, directly before this place: then a string has escapes. */
  #escapes = false;
  /** Kind of the last token if it is a string: one after a line break continues it, and has escapes if it has. */
  #string: 'plain' | 'escapes' | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Lexical {
    for (let more = this.#gap(); this.#at < this.#text.length; more = this.#gap()) this.#next(more);
    return { bounds: this.#bounds, lists: this.#lists, comments: this.#comments };
  }

  /**
   * Reads what stands between two tokens. Of so many comments, with space between them, only the beginning and the end
   * are kept: it must take no time to speak of.
   *
   * @returns whether a string that follows would be more of the one before
   */
  #gap(): boolean {
    const text = this.#text;
    const [string, before] = [this.#string, this.#at];
    let at = before;
    let [start, end, unended] = [-1, -1, false];
    // Line breaks: any, those before the last comment, those behind it.
    let [broken, within, behind, blocked] = [false, false, false, false];
    for (;;) {
      const code = text.charCodeAt(at);
      if (KINDS[code] === SPACE) {
        if (code === LF || code === CR) broken = behind = true;
        at++;
        continue;
      }
      if ((code !== MINUS && code !== SLASH) || !isComment(text, at)) break;
      if (start < 0) start = at;
      else within ||= behind;
      behind = false;
      if (code === MINUS) end = at = behindLine(text, at + 2);
      else {
        blocked = true;
        const closed = this.#behindBlock(at);
        unended = closed < 0;
        end = at = unended ? text.length : closed;
      }
    }
    if (at > before) this.#escapes = false;
    if (start >= 0) {
      const mark = unended ? '/*' : blocked && string !== null ? '/**/' : within ? '\n' : '';
      this.#comments.push({ start, end, mark });
    }
    this.#at = at;
    this.#string = null;
    return string === 'escapes' && broken && !blocked;
  }

  /** @param more whether a string here is more of the one before, which has escapes */
  #next(more: boolean): void {
    const kind = this.#kindAt(this.#at);
    if (this.#bounds.length >= 2 * (LIMITS.tokens + 2 * Math.min(this.#parameters, LIMITS.parameters)))
      throw tooComplex('its number of tokens', LIMITS.tokens, this.#here());
    const start = this.#at;
    if (more && kind === QUOTE) this.#escapes = true;
    this.#token(kind);
    this.#bounds.push(start, Math.min(this.#at, this.#text.length));
    if (this.#list !== null) this.#take(this.#list);
  }

  #kindAt(index: number): number {
    const code = this.#text.charCodeAt(index);
    return code < 128 ? (KINDS[code] ?? OTHER) : code >= 128 ? WORD : OTHER; // NaN at the end is neither
  }

  #token(kind: number): void {
    const afterIn = this.#afterIn;
    const escapes = this.#escapes;
    this.#afterIn = false;
    this.#escapes = false;
    switch (kind) {
      case WORD:
        this.#word();
        return;
      case DIGIT:
        this.#number();
        return;
      case OPERATOR:
        this.#operator();
        return;
      case OPEN:
        this.#open(afterIn);
        return;
      case CLOSE:
        this.#depth--;
        this.#at++;
        return;
      case QUOTE:
        this.#quoted(escapes);
        return;
      case NAME_QUOTE:
        this.#at = behindQuoted(this.#text, '"', this.#at);
        return;
      case DOLLAR:
        this.#dollar();
        return;
      default:
        this.#at++;
    }
  }

  #here(): Position {
    return positionOfIndex(this.#text, this.#at);
  }

  #word(): void {
    const start = this.#at;
    let at = start + 1;
    for (let kind = this.#kindAt(at); kind === WORD || kind === DIGIT || kind === DOLLAR; )
      kind = this.#kindAt(++at);
    this.#at = at;
    this.#escapes = at === start + 1 && (this.#text.charCodeAt(start) | 0x20) === 0x65;
    this.#afterIn = at === start + 2 && this.#text.slice(start, at).toLowerCase() === 'in';
  }

  #number(): void {
    let at = this.#at + 1;
    for (let kind = this.#kindAt(at); kind === DIGIT || kind === WORD || this.#text.charCodeAt(at) === DOT; )
      kind = this.#kindAt(++at);
    this.#at = at;
  }

  #operator(): void {
    const start = this.#at;
    let at = start + 1;
    while (this.#kindAt(at) === OPERATOR && !isComment(this.#text, at)) at++;
    if (at - start > LONGEST_OPERATOR)
      throw queryError('syntax', { detail: 'operator too long' }, this.#here());
    this.#at = at;
  }

  /** Behind the comment that begins at `start`, with those within it; -1 where it does not end. */
  #behindBlock(start: number): number {
    const text = this.#text;
    let at = start + 2;
    for (let open = 1; at < text.length; ) {
      const [code, next] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
      if (code === SLASH && next === STAR) {
        if (++open > LIMITS.comments)
          throw tooComplex('its depth of comments', LIMITS.comments, positionOfIndex(text, at));
        at += 2;
      } else if (code === STAR && next === SLASH) {
        at += 2;
        if (--open === 0) return at;
      } else at++;
    }
    return -1;
  }

  #open(afterIn: boolean): void {
    if (++this.#depth > LIMITS.brackets)
      throw tooComplex('its depth of brackets', LIMITS.brackets, this.#here());
    this.#at++;
    this.#list = afterIn ? plainList(this.#text, this.#at, LIMITS.listed - this.#listed) : null;
  }

  /** Continues after a long list, which its first item represents. */
  #take(list: PlainList): void {
    this.#list = null;
    this.#listed += list.items.length;
    this.#lists.push(list);
    this.#bounds.push(list.start, list.firstEnd);
    this.#at = list.end;
  }

  #quoted(escapes: boolean): void {
    this.#string = escapes ? 'escapes' : 'plain';
    if (!escapes) {
      this.#at = behindQuoted(this.#text, "'", this.#at);
      return;
    }
    const text = this.#text;
    let at = this.#at + 1;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === BACKSLASH) at++;
      else if (code === QUOTE_CODE && text.charCodeAt(++at) !== QUOTE_CODE) break;
    }
    this.#at = at;
  }

  /** `$n`, or a string between two tags. */
  #dollar(): void {
    const start = this.#at;
    let at = start + 1;
    if (this.#kindAt(at) === DIGIT) {
      while (this.#kindAt(at) === DIGIT) at++;
      this.#at = at;
      this.#parameters++;
      return;
    }
    for (let kind = this.#kindAt(at); kind === WORD || kind === DIGIT; ) kind = this.#kindAt(++at);
    if (this.#kindAt(at) !== DOLLAR) {
      this.#at = start + 1;
      return;
    }
    this.#at = after(this.#text, this.#text.slice(start, at + 1), at + 1);
  }
}

/** Behind the next `mark` from `from` on, or the end where there is none. */
function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at + mark.length;
}

/** Behind what `quote` at `start` opens; a doubled quote is part of it. */
function behindQuoted(text: string, quote: string, start: number): number {
  let at = after(text, quote, start + 1);
  while (text[at] === quote) at = after(text, quote, at + 1);
  return at;
}

/** The end of the line, or of the text. */
function behindLine(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); at < text.length && code !== LF && code !== CR; )
    code = text.charCodeAt(++at);
  return at;
}

function isComment(text: string, at: number): boolean {
  const [code, next] = [text.charCodeAt(at), text.charCodeAt(at + 1)];
  return (code === MINUS && next === MINUS) || (code === SLASH && next === STAR);
}

/**
 * The list whose first item begins at or behind `from`, up to its closing bracket; null where it is not plain, or short.
 *
 * @throws QueryError E0511 at the value beyond `most`: what stands behind it is not looked at
 */
function plainList(text: string, from: number, most: number): PlainList | null {
  const pattern = new RegExp(ITEM); // sticky: it has a place of its own
  const items: string[] = [];
  let [start, firstEnd, end] = [-1, -1, from];
  let type: PlainList['type'] = null;
  for (;;) {
    pattern.lastIndex = end;
    const found = pattern.exec(text);
    if (found === null) return null;
    if (items.length >= Math.max(most, LONG_LIST - 1))
      throw tooComplex('the number of values in its IN lists', LIMITS.listed, positionOfIndex(text, end));
    const [whole, space = '', minus = '', digits, quoted = ''] = found;
    if (items.length > 0 && (digits === undefined) !== (type === null)) return null;
    if (digits !== undefined && type !== 'int8') type = Number(digits) > INT4_MAX ? 'int8' : 'int4';
    items.push(digits === undefined ? quoted.replaceAll("''", "'") : `${minus}${withoutZeros(digits)}`);
    if (start < 0) start = end + space.length;
    end += whole.length;
    if (firstEnd < 0) firstEnd = end;
    const behind = behindSpace(text, end);
    const next = text.charCodeAt(behind);
    if (next === CLOSING) break;
    if (next !== COMMA) return null;
    end = behind + 1;
  }
  return items.length < LONG_LIST ? null : Object.freeze({ type, start, firstEnd, end, items });
}

/** Space, then whole digits of an int8 with or without a minus, or a string without a backslash. */
const ITEM = /([ \t\n\r\f\v]*)(?:(-?)(\d{1,18})(?![\w.$\u0080-\uffff])|'([^'\\]*(?:''[^'\\]*)*)')/y;
const INT4_MAX = 2_147_483_647;

function withoutZeros(digits: string): string {
  return digits.startsWith('0') ? String(BigInt(digits)) : digits;
}

function behindSpace(text: string, from: number): number {
  let at = from;
  while (KINDS[text.charCodeAt(at)] === SPACE) at++;
  return at;
}

function tooComplex(what: string, limit: number, at: Position) {
  return queryError('tooComplex', { what, limit }, at);
}
