import { type Position, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import { kindsByCharacter, positionOfIndex } from './text.js';

/**
 * The result of the first scan of a text. The scan takes linear time on any input, unlike the parser's own scanner,
 * which rescans long runs of operators and comments.
 *
 * The scan need not agree with the parser on every byte: if they differ, either a valid text is refused, or an invalid
 * one is left to the parser.
 */
export interface Lexical {
  /** UTF-16 offsets of the tokens, alternately start and end. Of a long IN list, only the first item is included. */
  readonly bounds: readonly number[];
  readonly lists: readonly PlainList[];
  /** Comments in order. Adjacent comments are combined. */
  readonly comments: readonly Comments[];
}

/** One or more comments between two tokens; `start` and `end` are UTF-16 offsets. */
export interface Comments {
  readonly start: number;
  readonly end: number;
  /**
   * Replacement of the comments for the grammar. It separates or joins the surrounding text in the same way as the
   * comments do. An unterminated comment remains unterminated.
   */
  readonly mark: '' | '\n' | '/**/' | '/*';
}

/** An IN list that consists entirely of integers, or entirely of strings without escapes. */
export interface PlainList {
  /** The smallest type that fits the digits of every number, without the signs; null for strings. */
  readonly type: 'int4' | 'int8' | null;
  /** UTF-16 offsets of the start and end of the first item, and of the end of the last. */
  readonly start: number;
  readonly firstEnd: number;
  readonly end: number;
  /** Unquoted values. A minus directly precedes the digits. */
  readonly items: readonly string[];
}

/** Minimum number of values in a list of which the parser sees only the first. `shapeOf` handles shorter lists. */
const LONG_LIST = 257;

/** NAMEDATALEN - 1 bytes, the grammar's limit on the length of operators. */
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

/** Token kind by first ASCII character. Non-ASCII characters belong to words. */
const KINDS = kindsByCharacter([
  [' \t\n\r\f\v', SPACE],
  ['abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_', WORD],
  ['0123456789', DIGIT],
  ['~!@#^&|`?+-*/%<>=', OPERATOR],
  ['([', OPEN],
  [')]', CLOSE],
  ["'", QUOTE],
  ['"', NAME_QUOTE],
  ['$', DOLLAR],
]);

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

/** Scans `text` for tokens, long IN lists and comments. @throws QueryError E0511 if it exceeds a limit */
export function scanText(text: string): Lexical {
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
  /** The long list that begins right after the bracket that was read last; null if none does. */
  #list: PlainList | null = null;
  #afterIn = false;
  /**
   * True if the last token is the word E and ends at this position, so that a string literal starting here has
   * escapes.
   */
  #escapes = false;
  /** The kind of the last token if it is a string, which a string on a later line continues with the same kind. */
  #string: 'plain' | 'escapes' | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  run(): Lexical {
    for (let more = this.#gap(); this.#at < this.#text.length; more = this.#gap()) this.#next(more);
    return { bounds: this.#bounds, lists: this.#lists, comments: this.#comments };
  }

  /**
   * Skips white space and comments between two tokens. Takes linear time because only the bounds of a run of comments
   * are kept.
   *
   * @returns true if a string that follows continues the previous one, which has escapes
   */
  #gap(): boolean {
    const text = this.#text;
    const [string, before] = [this.#string, this.#at];
    let at = before;
    let [start, end, unended] = [-1, -1, false];
    // Line breaks: `broken` anywhere, `within` between comments, `behind` after the last comment. `blocked`: there was
    // a block comment.
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
      if (code === MINUS) end = at = endOfLine(text, at + 2);
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

  /** Reads one token. @param more true if a string here continues the previous one, which has escapes */
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
    return code < 128 ? (KINDS[code] ?? OTHER) : code >= 128 ? WORD : OTHER; // NaN past the end
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
        this.#at = afterQuoted(this.#text, '"', this.#at);
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

  /** Returns the index after the block comment at `start`, which may be nested; -1 if it is unterminated. */
  #behindBlock(start: number): number {
    const text = this.#text;
    const next = (mark: string, from: number): number => {
      const at = text.indexOf(mark, from);
      return at < 0 ? text.length : at;
    };
    let at = start + 2;
    let [opens, closes] = [-1, -1];
    for (let open = 1; ; at += 2) {
      if (opens < at) opens = next('/*', at);
      if (closes < at) closes = next('*/', at);
      at = Math.min(opens, closes);
      if (at === text.length) return -1;
      if (at === opens) {
        if (++open > LIMITS.comments)
          throw tooComplex('its depth of comments', LIMITS.comments, positionOfIndex(text, at));
      } else if (--open === 0) return at + 2;
    }
  }

  #open(afterIn: boolean): void {
    if (++this.#depth > LIMITS.brackets)
      throw tooComplex('its depth of brackets', LIMITS.brackets, this.#here());
    this.#at++;
    this.#list = afterIn ? plainList(this.#text, this.#at, LIMITS.listed - this.#listed) : null;
  }

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
      this.#at = afterQuoted(this.#text, "'", this.#at);
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

function after(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at + mark.length;
}

/** Returns the index after the string or name that `quote` opens at `start`. Doubled quotes do not end it. */
function afterQuoted(text: string, quote: string, start: number): number {
  let at = after(text, quote, start + 1);
  while (text[at] === quote) at = after(text, quote, at + 1);
  return at;
}

function endOfLine(text: string, from: number): number {
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
 * Reads the list whose first item begins at or after `from`. Returns null if the list is short or not plain.
 *
 * @throws QueryError E0511 at the first value of a long list beyond `most`, without reading further
 */
function plainList(text: string, from: number, most: number): PlainList | null {
  const pattern = new RegExp(ITEM); // a copy, because a sticky pattern keeps its lastIndex
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
    const behind = afterSpace(text, end);
    const next = text.charCodeAt(behind);
    if (next === CLOSING) break;
    if (next !== COMMA) return null;
    end = behind + 1;
  }
  return items.length < LONG_LIST ? null : Object.freeze({ type, start, firstEnd, end, items });
}

/** Matches white space followed by an integer of at most 18 digits or a string without a backslash. */
const ITEM = /([ \t\n\r\f\v]*)(?:(-?)(\d{1,18})(?![\w.$\u0080-\uffff])|'([^'\\]*(?:''[^'\\]*)*)')/y;
const INT4_MAX = 2_147_483_647;

function withoutZeros(digits: string): string {
  return digits.startsWith('0') ? String(BigInt(digits)) : digits;
}

function afterSpace(text: string, from: number): number {
  let at = from;
  while (KINDS[text.charCodeAt(at)] === SPACE) at++;
  return at;
}

function tooComplex(what: string, limit: number, at: Position) {
  return queryError('tooComplex', { what, limit }, at);
}
