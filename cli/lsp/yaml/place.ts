import { entryOf, isBlankOrComment, startOf, unquoted, type YamlLine } from './find.js';

/** A position in a YAML file, found by scanning lines because the file may be invalid. */
export interface YamlPlace {
  /** Path from the root to a value or to the mapping of a key: keys, and `[]` for list elements. */
  readonly steps: readonly string[];
  /** Kind of the position: a key of the mapping at `steps`, the value at `steps`, or either. */
  readonly role: 'key' | 'value' | 'either';
  readonly word: string;
  readonly start: number;
  readonly end: number;
  readonly siblings: ReadonlyMap<string, string>;
}

const FLOW_LINES = 60;
/** Maximum number of lines of a mapping to search before and after the cursor. */
const SIBLING_LINES = 100_000;

/** Returns the place at zero-based `line` and `column`; null within a comment. */
export function placeAt(lines: readonly string[], line: number, column: number): YamlPlace | null {
  const text = lines[line] ?? '';
  if (
    /(^|\s)#/.test(text.slice(0, column)) &&
    depthOf(`[${text.slice(0, column)}`) <= 1 &&
    isComment(text, column)
  )
    return null;
  const head = flowHead(lines, line);
  const entry = headEntry(lines[head] ?? '', head === line ? column : null);
  const { steps: parents, owner } = parentsOf(lines, head, entry);
  const around = [...parents, ...entry.dashes.map(() => '[]')];
  const [start, end] = wordAround(text, column, head < line || isFlow(lines[head] ?? '', entry));
  const word = unquoted(text.slice(start, end).trim());
  if (head === line && entry.key !== null && column <= entry.colon)
    return {
      steps: around,
      role: 'key',
      word: entry.key,
      start: entry.indent,
      end: entry.colon,
      siblings: siblingsOf(lines, head, entry),
    };
  const here = entry.key === null ? around : [...around, entry.key];
  const block = (): ReadonlyMap<string, string> =>
    entry.key === null && entry.dashes.length > 0 && owner !== null
      ? siblingsOf(lines, owner, entryOf(lines[owner] ?? ''))
      : siblingsOf(lines, head, entry);
  const before = textBetween(lines, [head, entry.valueAt], [line, column]);
  if (!/^[{[]/.test(before)) {
    const role = entry.key === null ? 'either' : 'value';
    return { steps: here, role, word, start, end, siblings: block() };
  }
  const flow = flowPlace(before);
  const siblings =
    flow.siblings === null
      ? block()
      : new Map([
          ...flow.siblings,
          ...siblingsAfter(textBetween(lines, [line, column], [line + FLOW_LINES, 0]), flow.within),
        ]);
  return { steps: [...here, ...flow.steps], role: flow.role, word, start, end, siblings };
}

/** Parses the entry on a line. On a blank line, the column of the cursor counts as its indentation. */
function headEntry(line: string, column: number | null): YamlLine {
  if (column === null || !/^\s*$/.test(line)) return entryOf(line);
  return { dashes: [], indent: column, key: null, colon: -1, valueAt: column };
}

function isFlow(line: string, entry: YamlLine): boolean {
  return /^[{[]/.test(line.slice(entry.valueAt));
}

function isComment(line: string, column: number): boolean {
  const hash = /(^|\s)#/.exec(line.replace(/"[^"]*"|'[^']*'/g, (quoted) => '_'.repeat(quoted.length)));
  return hash !== null && hash.index + hash[0].length <= column;
}

/** First line of the outermost flow collection that contains the start of `line`; `line` itself if there is none. */
function flowHead(lines: readonly string[], line: number): number {
  let [head, most, depth] = [line, 0, 0];
  for (let at = line - 1; at >= Math.max(0, line - FLOW_LINES); at--) {
    const text = lines[at] ?? '';
    depth += depthOf(text);
    if (depth > most) [head, most] = [at, depth];
    // A block key that opens no collection is not inside a flow collection.
    else if (depth <= 0 && entryOf(text).key !== null && !/[,}\]]\s*$/.test(text)) break;
  }
  return head;
}

/**
 * Returns the path to the parent of the entry on a line, and the line of the nearest parent key, or null without one.
 */
function parentsOf(
  lines: readonly string[],
  line: number,
  entry: YamlLine,
): { readonly steps: readonly string[]; readonly owner: number | null } {
  const steps: string[] = [];
  let owner: number | null = null;
  let limit = startOf(entry);
  let inList = entry.dashes.length > 0;
  for (let at = line - 1; at >= 0 && (limit > 0 || inList); at--) {
    const text = lines[at] ?? '';
    if (startsBeyond(text, limit) || isBlankOrComment(text)) continue;
    const above = entryOf(text);
    const elements = above.dashes.map(() => '[]');
    if (elements.length === 0) {
      if (above.key === null || !(above.indent < limit || (inList && above.indent === limit))) continue;
      steps.unshift(above.key);
      [limit, inList] = [above.indent, false];
    } else {
      if (startOf(above) >= limit) continue;
      const isParent = above.key !== null && above.indent < limit;
      steps.unshift(...elements, ...(isParent && above.key !== null ? [above.key] : []));
      [limit, inList] = [startOf(above), true];
      if (!isParent) continue;
    }
    owner ??= at;
  }
  return { steps, owner };
}

/** True if a line is indented beyond `limit`. Fast, because it is used to skip lines of large files. */
function startsBeyond(line: string, limit: number): boolean {
  for (let at = 0; at <= limit; at++) if (line[at] !== ' ') return false;
  return true;
}

/** Returns the plain values, by key, of the mapping that contains the entry on a line, including the entry itself. */
function siblingsOf(
  lines: readonly string[],
  line: number,
  { indent, dashes }: YamlLine,
): ReadonlyMap<string, string> {
  const siblings = new Map<string, string>();
  const add = (at: number, entry: YamlLine): void => {
    const value = (lines[at] ?? '')
      .slice(entry.valueAt)
      .replace(/\s+#.*$/, '')
      .trim();
    if (entry.key !== null) siblings.set(entry.key, unquoted(value));
  };
  for (let at = line; at >= Math.max(0, line - SIBLING_LINES); at--) {
    const text = lines[at] ?? '';
    if (startsBeyond(text, indent) || isBlankOrComment(text)) continue;
    const entry = entryOf(text);
    if (at < line && dashes.length > 0) break;
    if (entry.indent === indent) add(at, entry);
    if (startOf(entry) < indent) break;
  }
  for (let at = line + 1; at < Math.min(lines.length, line + SIBLING_LINES); at++) {
    const text = lines[at] ?? '';
    if (startsBeyond(text, indent) || isBlankOrComment(text)) continue;
    const entry = entryOf(text);
    if (startOf(entry) < indent) break;
    if (entry.indent === indent && entry.dashes.length === 0) add(at, entry);
  }
  return siblings;
}

/** Start and end column of the scalar around `column`; in a flow collection, punctuation ends the scalar. */
function wordAround(line: string, column: number, flow: boolean): readonly [number, number] {
  const quoted = quotedAround(line, column);
  if (quoted !== null) return quoted;
  const signs = flow ? /[\s,[\]{}]/ : /\s/;
  // A colon inside a name (`user:maria`) is not followed by whitespace.
  const stops = (at: number): boolean =>
    signs.test(line[at] ?? '') || (line[at] === ':' && /[\s,[\]{}]|^$/.test(line[at + 1] ?? ''));
  let start = column;
  while (start > 0 && !stops(start - 1)) start--;
  let end = column;
  while (end < line.length && !stops(end)) end++;
  return [start, end];
}

function quotedAround(line: string, column: number): readonly [number, number] | null {
  for (const found of line.matchAll(/"[^"]*"|'[^']*'/g)) {
    if (found.index < column && column <= found.index + found[0].length)
      return [found.index, found.index + found[0].length];
  }
  return null;
}

function textBetween(
  lines: readonly string[],
  [fromLine, from]: readonly [number, number],
  [toLine, to]: readonly [number, number],
): string {
  if (fromLine === toLine) return (lines[fromLine] ?? '').slice(from, to);
  const between = lines.slice(fromLine + 1, toLine);
  return [(lines[fromLine] ?? '').slice(from), ...between, (lines[toLine] ?? '').slice(0, to)].join('\n');
}

interface Sign {
  readonly sign: '{' | '}' | '[' | ']' | ',' | ':';
  readonly at: number;
}

/** Yields the punctuation outside quotes and comments between `from` and `to`; an open quote extends to the end. */
function* signsOf(text: string, from = 0, to = text.length): Generator<Sign> {
  let quote = '';
  for (let at = from; at < to; at++) {
    const character = text[at] ?? '';
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if ((character === '"' || character === "'") && /[\s[{,:]/.test(text[at - 1] ?? ' '))
      quote = character;
    else if (character === '#' && /\s/.test(text[at - 1] ?? ' ')) at = endOfLine(text, at, to);
    else if ('{}[],'.includes(character))
      yield { sign: character as Sign['sign'], at }; // matched above
    else if (character === ':' && /[\s[{]|^$/.test(text[at + 1] ?? '')) yield { sign: ':', at };
  }
}

function endOfLine(text: string, from: number, to: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? to : Math.min(end, to);
}

/** Number of flow collections that `text` leaves open; negative if it closes more than it opens. */
function depthOf(text: string): number {
  let depth = 0;
  for (const { sign } of signsOf(text)) {
    if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']') depth--;
  }
  return depth;
}

interface FlowPlace {
  /** Path from the start of the collection: keys, and `[]` for list elements. */
  readonly steps: readonly string[];
  readonly role: 'key' | 'value';
  readonly start: number;
  /** Values by key of the entries before the cursor in the innermost mapping; null outside any mapping. */
  readonly siblings: ReadonlyMap<string, string> | null;
  readonly within: number;
}

interface OpenCollection {
  readonly kind: 'map' | 'list';
  key: string | null;
  readonly siblings: Map<string, string>;
}

function flowPlace(before: string): FlowPlace {
  const frames: OpenCollection[] = [];
  let start = 0;
  const close = (at: number): void => {
    const frame = frames.at(-1);
    const text = before.slice(start, at).trim();
    if (frame?.kind === 'map' && frame.key !== null && text !== '')
      frame.siblings.set(frame.key, unquoted(text));
    if (frame !== undefined) frame.key = null;
  };
  for (const { sign, at } of signsOf(before)) {
    const frame = frames.at(-1);
    if (sign === '{' || sign === '[')
      frames.push({ kind: sign === '{' ? 'map' : 'list', key: null, siblings: new Map() });
    else if (sign === '}' || sign === ']') {
      close(at);
      frames.pop();
    } else if (sign === ',') close(at);
    else if (frame?.kind === 'map' && frame.key === null)
      frame.key = unquoted(before.slice(start, at).trim());
    else continue;
    start = at + 1;
  }
  const steps = frames.flatMap(({ kind, key }) => (kind === 'list' ? ['[]'] : key === null ? [] : [key]));
  const last = frames.at(-1);
  const innermost = frames.findLastIndex(({ kind }) => kind === 'map');
  return {
    steps,
    role: last?.kind === 'map' && last.key === null ? 'key' : 'value',
    start: start + (/^\s*/.exec(before.slice(start))?.[0].length ?? 0),
    siblings: frames[innermost]?.siblings ?? null,
    within: frames.length - 1 - innermost,
  };
}

/** Reads a mapping's plain values by key from the text after the cursor, which is `within` collections below it. */
function siblingsAfter(after: string, within: number): ReadonlyMap<string, string> {
  const siblings = new Map<string, string>();
  let depth = within;
  let start = 0;
  let key: string | null = null;
  for (const { sign, at } of signsOf(after)) {
    if (sign === '{' || sign === '[') depth++;
    else if (sign === ':' && depth === 0) {
      key = unquoted(after.slice(start, at).trim());
      start = at + 1;
    } else if (sign === ',' && depth > 0) continue;
    else if (sign !== ':') {
      if (depth === 0 && key !== null) siblings.set(key, unquoted(after.slice(start, at).trim()));
      if (sign !== ',') depth--;
      if (depth < 0) return siblings;
      if (depth === 0 && sign === ',') {
        start = at + 1;
        key = null;
      }
    }
  }
  return siblings;
}
