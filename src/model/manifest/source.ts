import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  parseDocument,
  type Scalar,
  type YAMLError,
} from 'yaml';
import {
  CODES,
  type Diagnostic,
  type LineColumn,
  ManifestProblems,
  type Path,
  pointer,
  steps,
  type TextRange,
  type UnplacedDiagnostic,
} from './diagnostic.js';
import { simpleYaml } from './simple-yaml.js';
import { keyText, plainValue } from './yaml-value.js';

/** Maximum file size in bytes. A manifest of 10,000 entities has about 10 MiB. */
export const LARGEST_FILE = 32 * 1024 * 1024;
const MOST_DIAGNOSTICS = 100;

/** A parsed YAML file in which every part can be located. */
export interface YamlSource {
  readonly file: string;
  readonly text: string;
  /** Plain data. Objects have no prototype, so that `__proto__` is an ordinary name. */
  readonly value: unknown;
  /** Range of the part at `path`, or of the innermost existing part that contains it. */
  locate(path: Path, options?: ProblemLocation): TextRange;
}

type ProblemLocation = Pick<UnplacedDiagnostic, 'onKey' | 'offset' | 'span'>;

/**
 * Parses one YAML 1.2 document.
 * @throws ManifestProblems with M0002 … M0007
 */
export function parseSource(text: string, file: string): YamlSource {
  if (text.length > LARGEST_FILE) throw tooLarge(file);
  const simple = simpleYaml(text);
  if (simple !== undefined) return new ParsedSource(file, text, simple);
  const parts = parseParts(text, file);
  const { value, problems } = plainValue(parts.document);
  const source = new ParsedSource(file, text, value, parts);
  throwProblems(source, problems);
  return source;
}

/** Runs `compile`. Diagnostics about parts that `source` does not contain are marked as `elsewhere`. */
export function locateIn<T>(source: YamlSource, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    const diagnostics = error.diagnostics.map((d): Diagnostic => {
      return names(source.value, steps(d.path)) ? d : Object.freeze({ ...d, elsewhere: true });
    });
    throw new ManifestProblems(diagnostics, source.text);
  }
}

/** True if a fragment contains the section and the member that a path refers to. */
function names(value: unknown, [section, name]: Path): boolean {
  if (section === undefined) return true;
  const has = (of: unknown, key: Path[number]): boolean =>
    typeof of === 'object' && of !== null && Object.hasOwn(of, key);
  if (!has(value, section)) return false;
  return name === undefined || has(Reflect.get(Object(value), section), name);
}

/** @throws ManifestProblems if `problems` is not empty */
export function throwProblems(source: YamlSource, problems: readonly UnplacedDiagnostic[]): void {
  if (problems.length > 0) throw new ManifestProblems(toDiagnostics(source, problems), source.text);
}

/** Locates problems in the file and sorts them in file order; at most 100 are returned. */
export function toDiagnostics(
  source: YamlSource,
  problems: readonly UnplacedDiagnostic[],
): readonly Diagnostic[] {
  const placed = problems.slice(0, MOST_DIAGNOSTICS).map((p): Diagnostic => {
    return Object.freeze({
      code: p.code,
      severity: 'error',
      file: source.file,
      range: source.locate(p.path, p),
      path: pointer(p.path),
      message: p.message,
      hint: p.hint,
    });
  });
  return placed.sort(inFileOrder);
}

function inFileOrder(a: Diagnostic, b: Diagnostic): number {
  return a.range.start.line - b.range.start.line || a.range.start.column - b.range.start.column;
}

interface ParsedFile {
  readonly document: Document.Parsed;
  readonly lines: LineIndex;
}

function parseParts(text: string, file: string): ParsedFile {
  const lines = new LineIndex(text);
  let document: Document.Parsed;
  try {
    // `uniqueKeys` would compare every pair of keys, which is slow; `plainValue` finds repeated keys instead.
    document = parseDocument(text, {
      prettyErrors: false,
      uniqueKeys: false,
      strict: true,
    });
  } catch (error) {
    if (error instanceof RangeError) throw whole(file, CODES.tooDeep, 'the file is nested too deeply', null);
    throw error;
  }
  const faults = [...document.errors, ...document.warnings];
  if (faults.length === 0) return { document, lines };
  // Only the first error is reported: the others mostly follow from it.
  throw new ManifestProblems(
    faults
      .map((e) => fromYaml(e, file, lines))
      .sort(inFileOrder)
      .slice(0, 1),
    text,
  );
}

function fromYaml(error: YAMLError, file: string, lines: LineIndex): Diagnostic {
  return Object.freeze({
    code: CODES.syntax,
    severity: 'error',
    file,
    range: rangeOf(lines, error.pos[0], error.pos[1]),
    path: '',
    message: MESSAGES.get(error.code) ?? lowerFirst(error.message),
    hint: HINTS.get(error.code) ?? null,
  });
}

const MESSAGES: ReadonlyMap<string, string> = new Map([
  ['MULTIPLE_DOCS', 'the file holds more than one document'],
  ['BAD_ALIAS', 'an alias has no name'],
]);

const HINTS: ReadonlyMap<string, string> = new Map([
  ['BAD_ALIAS', 'a value that begins with `*` needs quotes: "*"'],
  ['TAB_AS_INDENT', 'indent with spaces'],
  ['BLOCK_AS_IMPLICIT_KEY', 'check the indentation, and quote text that holds `: `'],
]);

class ParsedSource implements YamlSource {
  readonly file: string;
  readonly text: string;
  readonly value: unknown;
  #parts: ParsedFile | null;

  /** @param parts if missing, the file is parsed again when a position is needed, which is rare */
  constructor(file: string, text: string, value: unknown, parts: ParsedFile | null = null) {
    this.file = file;
    this.text = text;
    this.value = value;
    this.#parts = parts;
  }

  get #whole(): ParsedFile {
    this.#parts ??= parseParts(this.text, this.file);
    return this.#parts;
  }

  locate(path: Path, options: ProblemLocation = {}): TextRange {
    const { document, lines } = this.#whole;
    if (options.span !== undefined) return rangeOf(lines, options.span[0], options.span[1]);
    let node: Node | null = document.contents;
    let key: Node | null = null;
    let reached = 0;
    for (const step of path) {
      const next = child(this.#resolve(node), step);
      if (next === null) break;
      key = next.key;
      node = next.value;
      reached++;
    }
    const exact = reached === path.length;
    if (options.offset !== undefined && exact && isScalar(node)) return this.#inside(node, options.offset);
    const wide =
      !isScalar(node) || node.range === undefined || node.range === null || node.range[0] === node.range[1];
    const place = key !== null && (options.onKey === true || !exact || wide) ? key : node;
    return this.#rangeOf(place);
  }

  #inside(scalar: Scalar, offset: number): TextRange {
    const [start, end] = bounds(scalar);
    const at = offsetInSource(this.text, start, end, `${scalar.value}`, offset);
    return rangeOf(this.#whole.lines, at, Math.max(at + 1, wordEnd(this.text, at, end)));
  }

  #resolve(node: Node | null): Node | null {
    return isAlias(node) ? (node.resolve(this.#whole.document) ?? null) : node;
  }

  #rangeOf(node: Node | null): TextRange {
    const { lines } = this.#whole;
    if (node === null) return rangeOf(lines, 0, 0);
    const [start, end] = bounds(node);
    // Only the first line of a block is marked.
    const newline = this.text.indexOf('\n', start);
    const stop = isScalar(node) || newline === -1 || newline > end ? end : newline;
    return rangeOf(lines, start, stop);
  }
}

interface Child {
  readonly key: Node | null;
  readonly value: Node | null;
}

function child(parent: Node | null, step: string | number): Child | null {
  if (isMap(parent)) {
    const pair = parent.items.find((p) => isScalar(p.key) && keyText(p.key) === `${step}`);
    if (pair === undefined) return null;
    // Casts: `parseDocument` represents all keys and values as nodes; an absent value is null.
    return { key: pair.key as Node, value: pair.value as Node | null };
  }
  if (isSeq(parent)) {
    const item = parent.items[Number(step)];
    return item === undefined ? null : { key: item as Node, value: item as Node }; // same cast as above
  }
  return null;
}

function bounds(node: Node): readonly [number, number] {
  return node.range === undefined || node.range === null ? [0, 0] : [node.range[0], node.range[1]];
}

function wordEnd(text: string, from: number, limit: number): number {
  let end = from;
  while (end < limit && /\w/.test(text.charAt(end))) end++;
  return end;
}

/** Start offsets of lines. The YAML parser's own index omits lines that it could not read. */
class LineIndex {
  readonly text: string;
  #starts: readonly number[] | null = null;

  constructor(text: string) {
    this.text = text;
  }

  position(offset: number): LineColumn {
    this.#starts ??= startsOf(this.text);
    let [low, high] = [0, this.#starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return Object.freeze({ line: low + 1, column: offset - (this.#starts[low] ?? 0) + 1 });
  }
}

function startsOf(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

/** Limits a range to the text and to whole characters, since the YAML parser's positions may violate both. */
function rangeOf(lines: LineIndex, start: number, end: number): TextRange {
  const { text } = lines;
  const first = Math.min(start, text.length);
  const last = Math.max(first, Math.min(end, text.length));
  return Object.freeze({
    start: lines.position(splitsPair(text, first) ? first - 1 : first),
    end: lines.position(splitsPair(text, last) ? last + 1 : last),
  });
}

function splitsPair(text: string, at: number): boolean {
  return /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));
}

export function whole(file: string, code: string, message: string, hint: string | null): ManifestProblems {
  const range = rangeOf(new LineIndex(''), 0, 0);
  return new ManifestProblems(
    [Object.freeze({ code, severity: 'error', file, range, path: '', message, hint })],
    '',
  );
}

export function tooLarge(file: string): ManifestProblems {
  return whole(file, CODES.tooLarge, `the file is larger than ${LARGEST_FILE / 1024 / 1024} MiB`, null);
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

/**
 * Finds the position in the file of the character at `offset` in a scalar's value. The file may contain characters that
 * the value does not: quotes, escapes, block headers, indentation, folded lines. They are skipped while both texts are
 * read in parallel.
 *
 * @param start start of the scalar in `text`, in UTF-16 code units like `end` and `offset`
 */
function offsetInSource(text: string, start: number, end: number, value: string, offset: number): number {
  let at = contentStart(text, start, end);
  for (let i = 0; i < Math.min(offset, value.length); i++) {
    at = matching(text, at, end, value.charAt(i)) + 1;
  }
  if (offset < value.length) at = matching(text, at, end, value.charAt(offset));
  return Math.max(start, Math.min(at, end - 1));
}

function contentStart(text: string, start: number, end: number): number {
  const first = text.charAt(start);
  if (first === '|' || first === '>') {
    const newline = text.indexOf('\n', start);
    return newline === -1 || newline > end ? start : newline + 1;
  }
  return first === '"' || first === "'" ? start + 1 : start;
}

/**
 * Returns the first position at or after `from` whose character corresponds to `wanted`; `from` if there is none. A
 * line break may correspond to a space and vice versa.
 */
function matching(text: string, from: number, end: number, wanted: string): number {
  for (let at = from; at < end; at++) {
    const found = text.charAt(at);
    if (found === wanted || (isBlank(found) && isBlank(wanted))) return lastBlank(text, at, end, wanted);
  }
  return from;
}

/** Returns the last position of the white space that folding reduced to one space; `at` if nothing was folded. */
function lastBlank(text: string, at: number, end: number, wanted: string): number {
  if (wanted !== ' ' || text.charAt(at) === ' ') return at;
  let last = at;
  while (last + 1 < end && isBlank(text.charAt(last + 1))) last++;
  return last;
}

function isBlank(character: string): boolean {
  return character === ' ' || character === '\n' || character === '\t' || character === '\r';
}
