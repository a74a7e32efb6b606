/** What one line of block YAML begins: dashes of list elements, a key, a value. Columns count from 0, in UTF-16. */
export interface Entry {
  /** Columns of the dashes. */
  readonly dashes: readonly number[];
  /** Column of the key or value, behind the dashes. */
  readonly indent: number;
  readonly key: string | null;
  /** Of the colon behind the key; -1 where there is none. */
  readonly colon: number;
  readonly valueAt: number;
}

/** In quotes, or plain: a colon within it is followed by something. */
const KEY = /^("[^"]*"|'[^']*'|(?:[^\s"'[\]{},#&*!|>%@`-]|-[^\s:[\]{},#])(?:[^:[\]{},#]|:(?=\S))*?):(?=\s|$)/;

export function entryOf(line: string): Entry {
  let indent = leading(line, 0);
  const dashes: number[] = [];
  while (/^-(\s|$)/.test(line.slice(indent, indent + 2))) {
    dashes.push(indent);
    indent = leading(line, indent + 1);
  }
  const [whole = '', name = ''] = KEY.exec(line.slice(indent)) ?? [];
  if (whole === '') return { indent, dashes, key: null, colon: -1, valueAt: indent };
  const colon = indent + whole.length - 1;
  return { indent, dashes, key: unquoted(name.trimEnd()), colon, valueAt: leading(line, colon + 1) };
}

/** Where the line begins to say something, its dashes included. */
export function startOf({ dashes, indent }: Entry): number {
  return dashes[0] ?? indent;
}

export function saysNothing(line: string): boolean {
  return /^\s*(#|$)/.test(line);
}

/** A scalar without its quotes. */
export function unquoted(text: string): string {
  const [, double, single] = /^(?:"([^"]*)"?|'([^']*)'?)$/.exec(text) ?? [];
  return double ?? single ?? text;
}

function leading(line: string, from: number): number {
  let at = from;
  while (line[at] === ' ') at++;
  return at;
}
