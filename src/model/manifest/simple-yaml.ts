/**
 * Parses the subset of YAML that most manifests use, about twenty times faster than a parser that tracks positions:
 * block mappings and lists, flow collections within a line, plain scalars, quoted scalars without backslash escapes.
 *
 * @returns the value, in which objects have no prototype; `undefined` for any other text, whether or not it is valid
 * YAML
 */
export function simpleYaml(text: string): unknown {
  if (ODD.test(text)) return undefined;
  try {
    return new Reader(text.split('\n')).document();
  } catch (error) {
    if (error instanceof NotSimple) return undefined;
    throw error;
  }
}

/** Control characters except line feed, and invisible characters that editors insert. */
const ODD = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]/;

class NotSimple extends Error {}

/** Maximum nesting depth, less than that of the full parser. */
const DEEPEST = 24;
/** Maximum length of a key in UTF-16 code units; YAML allows 1,024. */
const LONGEST_KEY = 256;

const KEY = /^[A-Za-z_][\w.\-/@]*(?::[\w.\-/@]+)*/;
const WORD_OF_YAML = /^(?:null|true|false)$/i;
const WHOLE = /^(?:0|-?[1-9]\d{0,14})$/;
const DECIMAL = /^-?(?:0|[1-9]\d{0,8})\.\d{1,6}$/;
const LETTER = /^[\p{L}_$/(]/u;
/** A character that ends a plain scalar in a flow collection. */
const FLOW_END = /[,[\]{}]/;

type YamlMapping = Record<string, unknown>;

class Reader {
  readonly #lines: readonly string[];
  #at = 0;
  #indent = -1;
  #line = '';
  #depth = 0;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
    this.#find(0);
  }

  document(): unknown {
    if (this.#indent !== 0) throw new NotSimple();
    const value = this.#block(0);
    if (this.#at < this.#lines.length) throw new NotSimple();
    return value;
  }

  /** Moves to the first line at or after `from` that is neither blank nor a comment. */
  #find(from: number): void {
    for (let at = from; at < this.#lines.length; at++) {
      const line = this.#lines[at] ?? '';
      let indent = 0;
      while (line.charCodeAt(indent) === SPACE) indent++;
      if (indent === line.length || line.charCodeAt(indent) === HASH) continue;
      if (indent === 0 && /^(?:---|\.\.\.|%)/.test(line)) throw new NotSimple();
      this.#at = at;
      this.#indent = indent;
      this.#line = line;
      return;
    }
    this.#at = this.#lines.length;
    this.#indent = -1;
    this.#line = '';
  }

  #next(): void {
    this.#find(this.#at + 1);
  }

  #block(indent: number): unknown {
    if (++this.#depth > DEEPEST) throw new NotSimple();
    const value = isItem(this.#line, indent) ? this.#list(indent) : this.#mapping(indent, indent);
    this.#depth--;
    return value;
  }

  #list(indent: number): unknown[] {
    const items: unknown[] = [];
    while (this.#indent === indent && isItem(this.#line, indent)) {
      let start = indent + 1;
      while (this.#line.charCodeAt(start) === SPACE) start++;
      if (start >= this.#line.length || this.#line.charCodeAt(start) === HASH) throw new NotSimple();
      const key = this.#keyAt(start);
      if (key === null) items.push(this.#scalarLine(start, indent));
      else items.push(this.#mapping(start, indent));
    }
    if (this.#indent > indent) throw new NotSimple();
    return items;
  }

  /** Reads a mapping whose keys are indented by `indent`; its first key may follow a list dash at `dash`. */
  #mapping(indent: number, dash: number): YamlMapping {
    const members: YamlMapping = Object.create(null);
    let first = dash < indent;
    while (first || this.#indent === indent) {
      const key = this.#keyAt(indent);
      if (key === null || key in members) throw new NotSimple();
      members[key] = this.#value(indent + key.length + 1, indent);
      first = false;
    }
    if (this.#indent > indent) throw new NotSimple();
    return members;
  }

  /** Returns the key at `start`; null unless it is followed by a colon and then a space or the end of the line. */
  #keyAt(start: number): string | null {
    const key = KEY.exec(this.#line.slice(start, start + LONGEST_KEY + 1))?.[0];
    if (key === undefined || key.length > LONGEST_KEY || WORD_OF_YAML.test(key)) return null;
    const end = start + key.length;
    if (this.#line.charCodeAt(end) !== COLON) return null;
    return end + 1 === this.#line.length || this.#line.charCodeAt(end + 1) === SPACE ? key : null;
  }

  /** Reads the value of a key indented by `indent`: the rest of the line from `start` on, or the block below. */
  #value(start: number, indent: number): unknown {
    let at = start;
    while (this.#line.charCodeAt(at) === SPACE) at++;
    if (at < this.#line.length && this.#line.charCodeAt(at) !== HASH) return this.#scalarLine(at, indent);
    this.#next();
    if (this.#indent > indent) return this.#block(this.#indent);
    return this.#indent === indent && isItem(this.#line, indent) ? this.#block(indent) : null;
  }

  /**
   * Reads a scalar or flow collection that extends to the end of the line. If the next line is indented more deeply,
   * the value continues there, and the text is outside the supported subset of YAML.
   */
  #scalarLine(start: number, indent: number): unknown {
    const inline = new Inline(this.#line, start);
    const value = inline.whole();
    this.#next();
    if (this.#indent > indent) throw new NotSimple();
    return value;
  }
}

class Inline {
  readonly #line: string;
  #at: number;
  #depth = 0;

  constructor(line: string, at: number) {
    this.#line = line;
    this.#at = at;
  }

  /** Reads the value up to the end of the line or up to a comment. */
  whole(): unknown {
    const code = this.#line.charCodeAt(this.#at);
    if (code !== DOUBLE && code !== SINGLE && code !== OPEN_LIST && code !== OPEN_MAP)
      return this.#plain(this.#rest());
    const value = this.#flow();
    const rest = this.#line.slice(this.#at);
    if (!/^ *(?: #.*)?$/.test(rest)) throw new NotSimple();
    return value;
  }

  /** Returns the rest of the line, without its comment. */
  #rest(): string {
    const comment = this.#line.indexOf(' #', this.#at);
    const text = trimmed(this.#line.slice(this.#at, comment < 0 ? undefined : comment));
    if (text.includes(': ') || text.endsWith(':')) throw new NotSimple();
    return text;
  }

  #plain(text: string): unknown {
    if (LETTER.test(text)) {
      if (!WORD_OF_YAML.test(text)) return text;
      if (text === 'true' || text === 'false') return text === 'true';
      throw new NotSimple();
    }
    if (WHOLE.test(text) || DECIMAL.test(text)) return Number(text);
    throw new NotSimple();
  }

  #flow(): unknown {
    switch (this.#line.charCodeAt(this.#at)) {
      case DOUBLE:
        return this.#doubleQuoted();
      case SINGLE:
        return this.#singleQuoted();
      case OPEN_LIST:
        return this.#deeper(() => this.#list());
      case OPEN_MAP:
        return this.#deeper(() => this.#mapping());
      default:
        return this.#flowPlain();
    }
  }

  #deeper<T>(read: () => T): T {
    if (++this.#depth > DEEPEST) throw new NotSimple();
    const value = read();
    this.#depth--;
    return value;
  }

  #flowPlain(): unknown {
    const length = this.#line.slice(this.#at).search(FLOW_END);
    if (length <= 0) throw new NotSimple();
    const text = trimmed(this.#line.slice(this.#at, this.#at + length));
    if (text.includes('#') || /:(?:\s|$)/.test(text)) throw new NotSimple();
    this.#at += length;
    return this.#plain(text);
  }

  #doubleQuoted(): string {
    const end = this.#line.indexOf('"', this.#at + 1);
    if (end < 0) throw new NotSimple();
    const text = this.#line.slice(this.#at + 1, end);
    if (text.includes('\\')) throw new NotSimple();
    this.#at = end + 1;
    return text;
  }

  #singleQuoted(): string {
    let text = '';
    for (let from = this.#at + 1; ; ) {
      const end = this.#line.indexOf("'", from);
      if (end < 0) throw new NotSimple();
      text += this.#line.slice(from, end);
      if (this.#line.charCodeAt(end + 1) !== SINGLE) {
        this.#at = end + 1;
        return text;
      }
      text += "'";
      from = end + 2;
    }
  }

  #list(): unknown[] {
    const items: unknown[] = [];
    this.#members(CLOSE_LIST, () => items.push(this.#flow()));
    return items;
  }

  #mapping(): YamlMapping {
    const members: YamlMapping = Object.create(null);
    this.#members(CLOSE_MAP, () => {
      const key = KEY.exec(this.#line.slice(this.#at, this.#at + LONGEST_KEY + 1))?.[0];
      if (key === undefined || key.length > LONGEST_KEY || WORD_OF_YAML.test(key) || key in members)
        throw new NotSimple();
      this.#at += key.length;
      if (this.#line.charCodeAt(this.#at) !== COLON || this.#line.charCodeAt(this.#at + 1) !== SPACE)
        throw new NotSimple();
      this.#at++;
      this.#spaces();
      members[key] = this.#flow();
    });
    return members;
  }

  /** Reads the items of a flow collection, separated by commas, up to the character code `close`. */
  #members(close: number, read: () => void): void {
    this.#at++;
    this.#spaces();
    if (this.#line.charCodeAt(this.#at) !== close) {
      for (;;) {
        read();
        this.#spaces();
        if (this.#line.charCodeAt(this.#at) !== COMMA) break;
        this.#at++;
        this.#spaces();
      }
    }
    if (this.#line.charCodeAt(this.#at) !== close) throw new NotSimple();
    this.#at++;
  }

  #spaces(): void {
    while (this.#line.charCodeAt(this.#at) === SPACE) this.#at++;
  }
}

const SPACE = 0x20;
const HASH = 0x23;
const COLON = 0x3a;
const COMMA = 0x2c;
const DASH = 0x2d;
const DOUBLE = 0x22;
const SINGLE = 0x27;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_MAP = 0x7b;
const CLOSE_MAP = 0x7d;

/** Removes trailing spaces. Other white space, such as a no-break space, is part of a scalar. */
function trimmed(text: string): string {
  const rest = text.trimEnd();
  if (/[^ ]/.test(text.slice(rest.length))) throw new NotSimple();
  return rest;
}

/** True if a list item begins at `indent`. */
function isItem(line: string, indent: number): boolean {
  return (
    line.charCodeAt(indent) === DASH && (indent + 1 === line.length || line.charCodeAt(indent + 1) === SPACE)
  );
}
