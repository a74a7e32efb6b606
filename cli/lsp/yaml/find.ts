/** A range within a line. Zero-based; the end is exclusive. */
export interface YamlRange {
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Position of the key at `steps`, or of its nearest existing ancestor; null if not even the first key exists. Works
 * line by line, so that invalid files can be searched too. A step within a line (`columns: [id, name]`) is found as a
 * word.
 */
export function findKey(lines: readonly string[], steps: readonly string[]): YamlRange | null {
  let found: YamlRange | null = null;
  let from = 0;
  let within = -1;
  for (const step of steps) {
    const next = childOf(lines, from, within, step);
    if (next === null) return found === null ? null : wordIn(lines[found.line] ?? '', found, step);
    found = next;
    from = next.line + 1;
    within = startOf(entryOf(lines[next.line] ?? ''));
  }
  return found;
}

function childOf(lines: readonly string[], from: number, within: number, key: string): YamlRange | null {
  let indent: number | null = null;
  for (let line = from; line < lines.length; line++) {
    const text = lines[line] ?? '';
    if (indent !== null && text.startsWith(' '.repeat(indent + 1))) continue;
    if (isBlankOrComment(text)) continue;
    const entry = entryOf(text);
    const start = startOf(entry);
    if (start < within || (start === within && entry.dashes.length === 0)) return null;
    indent ??= start;
    if (start !== indent) continue;
    if (entry.key === key && entry.dashes.length === 0)
      return { line, start: entry.indent, end: entry.colon };
    const element = entry.dashes.length > 0 && text.slice(entry.indent).trim() === key;
    if (element) return { line, start: entry.indent, end: entry.indent + key.length };
  }
  return null;
}

function wordIn(line: string, key: YamlRange, word: string): YamlRange {
  const pattern = new RegExp(`(?<!\\w)${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?!\\w)`, 'u');
  const at = pattern.exec(line.slice(key.end));
  if (at === null) return key;
  const start = key.end + at.index;
  return { line: key.line, start, end: start + word.length };
}

export interface Outline {
  readonly name: string;
  readonly place: YamlRange;
  readonly last: number;
  readonly children: readonly Outline[];
}

export function outlineOf(lines: readonly string[]): readonly Outline[] {
  const sections: {
    name: string;
    place: YamlRange;
    last: number;
    children: { name: string; place: YamlRange; last: number; children: [] }[];
  }[] = [];
  let indent: number | null = null;
  for (const [line, text] of lines.entries()) {
    const section = sections.at(-1);
    const member = section?.children.at(-1);
    if (isBlankOrComment(text)) continue;
    const own = text[0] !== ' ' && text[0] !== '-';
    if (!own && section !== undefined) {
      section.last = line;
      const entry: YamlLine | null =
        indent === null || !text.startsWith(' '.repeat(indent + 1)) ? entryOf(text) : null;
      if (
        entry !== null &&
        entry.dashes.length === 0 &&
        entry.key !== null &&
        (indent === null || entry.indent === indent)
      ) {
        indent = entry.indent;
        const place = { line, start: entry.indent, end: entry.colon };
        section.children.push({ name: entry.key, place, last: line, children: [] });
      } else if (member !== undefined) member.last = line;
      continue;
    }
    const entry = entryOf(text);
    indent = null;
    if (entry.key !== null)
      sections.push({
        name: entry.key,
        place: { line, start: 0, end: entry.colon },
        last: line,
        children: [],
      });
  }
  return sections;
}

/** Start of a line in block YAML: list dashes, key, value. Columns are zero-based and count UTF-16 code units. */
export interface YamlLine {
  readonly dashes: readonly number[];
  readonly indent: number;
  readonly key: string | null;
  /** Column of the colon after the key; -1 if there is no key. */
  readonly colon: number;
  readonly valueAt: number;
}

/** A quoted or plain key. A colon inside a plain key is not followed by whitespace. */
const KEY = /^("[^"]*"|'[^']*'|(?:[^\s"'[\]{},#&*!|>%@`-]|-[^\s:[\]{},#])(?:[^:[\]{},#]|:(?=\S))*?):(?=\s|$)/;

export function entryOf(line: string): YamlLine {
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

/** Column of the line's first character that is not blank; a leading dash of a list counts. */
export function startOf({ dashes, indent }: YamlLine): number {
  return dashes[0] ?? indent;
}

export function isBlankOrComment(line: string): boolean {
  return /^\s*(#|$)/.test(line);
}

export function unquoted(text: string): string {
  const [, double, single] = /^(?:"([^"]*)"?|'([^']*)'?)$/.exec(text) ?? [];
  return double ?? single ?? text;
}

function leading(line: string, from: number): number {
  let at = from;
  while (line[at] === ' ') at++;
  return at;
}
