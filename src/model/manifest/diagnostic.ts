import { nearest, type Relation } from 'osl-compiler';

/** A position in a text. `line` and `column` start at 1; columns count UTF-16 code units, as editors do. */
export interface LineColumn {
  readonly line: number;
  readonly column: number;
}

/** A half-open range: `end` is the position after the last character. */
export interface TextRange {
  readonly start: LineColumn;
  readonly end: LineColumn;
}

export type DiagnosticSeverity = 'error' | 'warning';

/** An error in a manifest or a policy file, with its position so that editors can mark it. */
export interface Diagnostic {
  readonly code: string;
  readonly severity: DiagnosticSeverity;
  readonly file: string;
  readonly range: TextRange;
  /** True if `path` refers to a part outside this text, which the fragment in this text makes invalid. */
  readonly elsewhere?: true;
  /** JSON Pointer into the document; empty for the document as a whole. */
  readonly path: string;
  /** One lower-case sentence; text from the file is in backticks. */
  readonly message: string;
  readonly hint: string | null;
}

/** Name of a member or index of an element. */
export type PathStep = string | number;
export type Path = readonly PathStep[];

/** A diagnostic that is located only by its path. */
export interface UnplacedDiagnostic {
  readonly path: Path;
  /** True to mark the key that ends `path` instead of its value. */
  readonly onKey?: boolean;
  readonly code: string;
  readonly message: string;
  readonly hint: string | null;
  /** Position of the problem in the text at `path`, in UTF-16 code units. */
  readonly offset?: number;
  /** UTF-16 offsets into the file, if `path` is not precise enough. */
  readonly span?: readonly [number, number];
}

/** An invalid file. The diagnostics are in file order, and at least one has severity `error`. */
export class ManifestProblems extends Error {
  override readonly name = 'ManifestProblems';
  readonly diagnostics: readonly Diagnostic[];
  readonly #text: string;

  constructor(diagnostics: readonly Diagnostic[], text: string) {
    super(diagnostics.map(headline).join('\n'));
    this.diagnostics = diagnostics;
    this.#text = text;
  }

  /** All diagnostics as text for a terminal, each with its line and a caret. */
  format(): string {
    return formatDiagnostics(this.diagnostics, this.#text);
  }
}

/** Human-readable diagnostics: `file:line:column: error CODE message`, the line, a caret and the hint. */
export function formatDiagnostics(diagnostics: readonly Diagnostic[], text: string): string {
  const lines = text.split(/\r\n|\n|\r/);
  return diagnostics.map((d) => formatOne(d, lines[d.range.start.line - 1])).join('\n\n');
}

function headline(d: Diagnostic): string {
  const { line, column } = d.range.start;
  return `${d.file}:${line}:${column}: ${d.severity} ${d.code} ${d.message}`;
}

const LONGEST_SHOWN_LINE = 160;

function formatOne(d: Diagnostic, line: string | undefined): string {
  const out = [headline(d)];
  if (line !== undefined && line.trim() !== '') out.push(...marked(d.range, line));
  if (d.hint !== null) out.push(`  hint: ${d.hint}`);
  return out.join('\n');
}

/** Returns the line and a line of carets below `range`. Tabs are copied to the second line, to align the carets. */
function marked(range: TextRange, line: string): readonly string[] {
  const { column } = range.start;
  const from = column > LONGEST_SHOWN_LINE / 2 ? column - LONGEST_SHOWN_LINE / 2 : 0;
  const shown = printable(line.slice(from, from + LONGEST_SHOWN_LINE));
  const lead = shown.slice(0, column - 1 - from).replace(/[^\t]/g, ' ');
  const last = range.end.line === range.start.line ? range.end.column : line.length + 1;
  const width = Math.max(1, Math.min(last - column, shown.length - lead.length));
  const gutter = `${range.start.line}`.padStart(5);
  return [`${gutter} | ${shown}`, `${' '.repeat(gutter.length)} | ${lead}${'^'.repeat(width)}`];
}

/** Replaces control characters, which could manipulate the reader's terminal. */
function printable(line: string): string {
  return line.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

/** Formats a path as a JSON Pointer (RFC 6901). */
export function pointer(path: Path): string {
  return path.map((s) => `/${`${s}`.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Splits a JSON Pointer (`/roles/analyst/grants/0`) into its steps. */
export function steps(jsonPointer: string): Path {
  if (jsonPointer === '') return [];
  return jsonPointer
    .slice(1)
    .split('/')
    .map((s) => s.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/**
 * Closed catalogue of the errors of a manifest or a policy file. `M0…` concerns the file, `M1…` its shape, `M2…` its
 * meaning. A retired code is never reused.
 */
export const CODES = Object.freeze({
  unreadable: 'M0001',
  tooLarge: 'M0002',
  syntax: 'M0003',
  duplicateKey: 'M0004',
  tooDeep: 'M0005',
  aliases: 'M0006',
  key: 'M0007',

  wrongType: 'M1001',
  unknownKey: 'M1002',
  missingKey: 'M1003',
  notAllowed: 'M1004',
  badName: 'M1005',

  unknownReference: 'M2001',
  duplicateName: 'M2002',
  undeclaredColumn: 'M2003',
  unknownType: 'M2004',
  keyNotColumn: 'M2005',
  notSealed: 'M2006',
  notUnique: 'M2007',
  typeMismatch: 'M2008',
  conflict: 'M2009',
  reserved: 'M2010',
  badExpression: 'M2011',
  notGoverned: 'M2012',
});

/** "perhaps you meant …", or null if no candidate is similar. */
export function suggestion(name: string, candidates: Iterable<string>): string | null {
  // Truncated before the search: a manifest may contain a text of any length where a name is expected.
  const near = nearest(name.slice(0, LONGEST_NAME), candidates);
  return near === null ? null : `perhaps you meant \`${near}\``;
}

const LONGEST_NAME = 130;

export type RelationMap = ReadonlyMap<string, Relation>;

/** Collects all diagnostics, so that an author sees all errors at once. */
export class Problems {
  readonly #list: UnplacedDiagnostic[] = [];
  /** Relations that are declared but could not be compiled; references to them are not reported again. */
  readonly broken = new Set<string>();

  add(code: string, path: Path, message: string, hint: string | null = null, onKey = false): void {
    this.#list.push({ code, path, message, hint, onKey });
  }

  /** Reports that no `what` named `name` is declared, and suggests the most similar name in `known`. */
  unknown(path: Path, what: string, name: string, known: Iterable<string>): void {
    // Problems beyond the limit are not shown, so they need no suggestion.
    const hint = this.#list.length < 100 ? suggestion(name, known) : null;
    this.add(CODES.unknownReference, path, `${what} \`${name}\` is not declared`, hint);
  }

  /** Reports each of `names` that is not in `known`; `path` is the path of the list. */
  unknownIn(path: Path, what: string, names: readonly string[] = [], known: Iterable<string>): void {
    if (names.length === 0) return;
    const all = new Set(known);
    for (const [i, name] of names.entries()) if (!all.has(name)) this.unknown([...path, i], what, name, all);
  }

  get list(): readonly UnplacedDiagnostic[] {
    return this.#list;
  }
}

export function membersOf<T>(
  part: Readonly<Record<string, T>> | undefined,
): readonly (readonly [string, T])[] {
  return part === undefined ? [] : Object.entries(part);
}
