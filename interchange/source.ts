import { isObject } from '../src/base/is-object.js';
import {
  CODES,
  ManifestProblems,
  type Path,
  type PathStep,
  parseSource,
  pointer,
  type TextRange,
  throwProblems,
  type UnplacedDiagnostic,
  type YamlSource,
} from '../src/model/manifest/index.js';
import { safeText } from './names.js';

/** A text to import, referred to as `file` in reports. */
export interface ImportText {
  readonly file: string;
  readonly text: string;
}

/** Maximum file size in UTF-16 code units; enough for about ten thousand models. */
const LARGEST = 16 * 1024 * 1024;

/** One file in another tool's format, with a record of which parts were read. */
export class SourceFile {
  readonly file: string;
  readonly root: unknown;
  readonly tracker: ReadTracker;
  readonly #source: YamlSource;
  readonly #problems: UnplacedDiagnostic[] = [];

  /** @throws ManifestProblems if the text is not YAML, is too large or too deep, or has a duplicate key */
  constructor({ file, text }: ImportText) {
    if (text.length > LARGEST) throw tooLarge(file);
    this.#source = parseSource(text, file);
    this.file = file;
    this.root = this.#source.value;
    this.tracker = new ReadTracker(this.#source);
  }

  problem(path: Path, code: string, message: string, hint: string | null = null, onKey = false): void {
    if (this.#problems.length < 100) this.#problems.push({ path, code, message, hint, onKey });
  }

  /** @throws ManifestProblems if a part has the wrong shape */
  check(): void {
    throwProblems(this.#source, this.#problems);
  }
}

function tooLarge(file: string): ManifestProblems {
  const at = Object.freeze({ line: 1, column: 1 });
  const message = `the file is larger than ${LARGEST / 1024 / 1024} MiB`;
  const range = Object.freeze({ start: at, end: at });
  return new ManifestProblems(
    [Object.freeze({ code: CODES.tooLarge, severity: 'error', file, range, path: '', message, hint: null })],
    '',
  );
}

/** A place in a file, for later reports. */
export interface SourcePlace {
  readonly file: SourceFile;
  readonly path: Path;
}

/** Adds an entry to the loss report of the file at `place`. */
export function report(
  place: SourcePlace,
  kind: LossKind,
  reason: string,
  severity: Loss['severity'] = 'normal',
): void {
  place.file.tracker.add(place.path, false, kind, reason, severity);
}

/**
 * `lost`: the manifest contains nothing of the construct. `approximated`: it contains something with nearly the same
 * meaning. `decision`: an assumption was made that the user should review.
 */
export type LossKind = 'lost' | 'approximated' | 'decision';

/** An entry of a loss report. */
export interface Loss {
  readonly kind: LossKind;
  /** `high` if it affects who can see what. */
  readonly severity: 'high' | 'normal';
  readonly file: string;
  readonly range: TextRange;
  /** JSON Pointer into the file; empty for the whole file. */
  readonly path: string;
  /** One sentence, with words from the source in backticks. */
  readonly reason: string;
}

/** Formats a loss for the terminal: `file:line:column: lost: reason`, with `lost (access)` if the severity is high. */
export function formatLoss(loss: Loss): string {
  const { line, column } = loss.range.start;
  const grave = loss.severity === 'high' ? ' (access)' : '';
  return `${loss.file}:${line}:${column}: ${loss.kind}${grave}: ${loss.reason}`;
}

/** Summarizes a report: `3 lost, 1 approximated`, or `nothing was lost` if it is empty. */
export function countLosses(losses: readonly Loss[]): string {
  const counts = (['lost', 'approximated', 'decision'] as const).flatMap((kind) => {
    const n = losses.filter((l) => l.kind === kind).length;
    if (n === 0) return [];
    return [kind === 'decision' ? `${n} to decide` : `${n} ${kind}`];
  });
  return counts.length === 0 ? 'nothing was lost' : counts.join(', ');
}

const MOST_LOSSES = 100_000;
/** Maximum number of unknown keys; a file with more is assumed to be in another format. */
const MOST_UNREAD = 10_000;

interface PendingLoss {
  readonly path: Path;
  readonly onKey: boolean;
  readonly kind: LossKind;
  readonly severity: Loss['severity'];
  readonly reason: string;
}

/**
 * Records which parts of a file were read and what could not be converted. Parts that were never read are reported as
 * lost, so that no key is dropped silently.
 */
class ReadTracker {
  readonly #source: YamlSource;
  readonly #read = new WeakMap<object, Set<PathStep>>();
  readonly #settled = new WeakMap<object, Set<PathStep>>();
  readonly #pending: PendingLoss[] = [];
  #unread = 0;

  constructor(source: YamlSource) {
    this.#source = source;
  }

  markRead(parent: object, step: PathStep): void {
    mark(this.#read, parent, step);
  }

  /** Marks a key as read, and excludes everything below it from the report. */
  settle(parent: object, step: PathStep): void {
    mark(this.#read, parent, step);
    mark(this.#settled, parent, step);
  }

  add(path: Path, onKey: boolean, kind: LossKind, reason: string, severity: Loss['severity']): void {
    if (this.#pending.length >= MOST_LOSSES) this.#tooMany(path, MOST_LOSSES);
    this.#pending.push({ path, onKey, kind, severity, reason });
  }

  /** Reports unread keys and returns all losses in file order. Must be called only once, at the end. */
  losses(): readonly Loss[] {
    this.#leftover(this.#source.value, []);
    const placed = this.#pending.map(({ path, onKey, kind, severity, reason }): Loss => {
      const range = this.#source.locate(path, { onKey });
      return Object.freeze({ kind, severity, file: this.#source.file, range, path: pointer(path), reason });
    });
    return placed.sort(
      (a, b) => a.range.start.line - b.range.start.line || a.range.start.column - b.range.start.column,
    );
  }

  #leftover(value: unknown, path: Path): void {
    if (typeof value !== 'object' || value === null) return;
    const read = this.#read.get(value);
    const settled = this.#settled.get(value);
    for (const [key, member] of Object.entries(value)) {
      const step = Array.isArray(value) ? Number(key) : key;
      if (settled?.has(step) === true || isEmptyValue(member)) continue;
      if (read?.has(step) === true) this.#leftover(member, [...path, step]);
      else {
        if (++this.#unread > MOST_UNREAD) this.#tooMany([...path, step], MOST_UNREAD);
        this.add([...path, step], true, 'lost', unknownKey(step), 'normal');
      }
    }
  }

  #tooMany(path: Path, limit: number): void {
    const message = `more than ${limit} constructs of the file do not map`;
    throwProblems(this.#source, [
      { path, code: CODES.notAllowed, message, hint: 'is it a file of this format?' },
    ]);
  }
}

function unknownKey(step: PathStep): string {
  return typeof step === 'number'
    ? 'the item has no counterpart'
    : `\`${safeText(step)}\` has no counterpart`;
}

/** True for null, an empty object or an empty list. Generated files contain many keys with such values. */
function isEmptyValue(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

function mark(marks: WeakMap<object, Set<PathStep>>, parent: object, step: PathStep): void {
  const known = marks.get(parent);
  if (known === undefined) marks.set(parent, new Set([step]));
  else known.add(step);
}

type MappingMembers = Readonly<Record<string, unknown>>;

const LONGEST_TEXT = 4000;

/** A mapping in a source file, read key by key. Keys that are never read are reported as lost. */
export class SourceMapping {
  readonly file: SourceFile;
  readonly path: Path;
  readonly members: MappingMembers;

  private constructor(file: SourceFile, path: Path, members: MappingMembers) {
    this.file = file;
    this.path = path;
    this.members = members;
  }

  /** Returns the root of a file; null if it is not a mapping, which is recorded as a problem. */
  static ofFile(file: SourceFile): SourceMapping | null {
    return SourceMapping.#at(file, [], file.root);
  }

  static #at(file: SourceFile, path: Path, value: unknown): SourceMapping | null {
    if (isObject(value)) return new SourceMapping(file, path, value);
    file.problem(path, CODES.wrongType, `${placeName(path)} must be a mapping`);
    return null;
  }

  get place(): SourcePlace {
    return this;
  }

  at(key: string): SourcePlace {
    return { file: this.file, path: [...this.path, key] };
  }

  keys(): readonly string[] {
    return Object.keys(this.members);
  }

  has(key: string): boolean {
    return this.members[key] !== undefined && this.members[key] !== null;
  }

  #get(key: string): unknown {
    this.file.tracker.markRead(this.members, key);
    return this.members[key] ?? null;
  }

  #wrong(key: string, wanted: string): null {
    this.file.problem([...this.path, key], CODES.wrongType, `\`${safeText(key)}\` must be ${wanted}`);
    return null;
  }

  text(key: string): string | null {
    const value = this.#get(key);
    return value === null || typeof value === 'string' ? value : this.#wrong(key, 'text');
  }

  /** Reads a required text; if it is missing, records a problem and returns an empty string. */
  needText(key: string): string {
    const value = this.text(key);
    if (value !== null && value !== '') return value;
    if (!this.has(key) || value === '') {
      const message = `${placeName(this.path)} has no \`${key}\``;
      this.file.problem(this.path, CODES.missingKey, message, null, true);
    }
    return '';
  }

  /** Reads a text, or a number or boolean converted to text, as in `expr: 1`. */
  scalar(key: string): string | null {
    const value = this.#get(key);
    if (value === null || typeof value === 'string') return value;
    return typeof value === 'object' ? this.#wrong(key, 'text or a number') : `${value}`;
  }

  flag(key: string): boolean | null {
    const value = this.#get(key);
    return value === null || typeof value === 'boolean' ? value : this.#wrong(key, 'true or false');
  }

  number(key: string): number | null {
    const value = this.#get(key);
    return value === null || typeof value === 'number' ? value : this.#wrong(key, 'a number');
  }

  child(key: string): SourceMapping | null {
    const value = this.#get(key);
    return value === null ? null : SourceMapping.#at(this.file, [...this.path, key], value);
  }

  parts(key: string): readonly SourceMapping[] {
    const path = [...this.path, key];
    return this.#list(key).flatMap(([list, i]) => {
      this.file.tracker.markRead(list, i);
      const part = SourceMapping.#at(this.file, [...path, i], list[i]);
      return part === null ? [] : [part];
    });
  }

  /** Reads a list of texts; a single text counts as a list with one item. */
  texts(key: string): readonly string[] {
    if (typeof this.members[key] === 'string') return [this.text(key) ?? ''];
    return this.#list(key).flatMap(([list, i]) => {
      this.file.tracker.markRead(list, i);
      const item = list[i];
      if (typeof item === 'string') return [item];
      this.file.problem([...this.path, key, i], CODES.wrongType, `\`${safeText(key)}[${i}]\` must be text`);
      return [];
    });
  }

  lists(key: string): readonly (readonly string[])[] {
    return this.#list(key).flatMap(([list, i]): readonly (readonly string[])[] => {
      this.file.tracker.markRead(list, i);
      const inner = list[i];
      if (Array.isArray(inner) && inner.every((t) => typeof t === 'string')) {
        for (const j of inner.keys()) this.file.tracker.markRead(inner, j);
        return [inner];
      }
      this.file.problem(
        [...this.path, key, i],
        CODES.wrongType,
        `\`${safeText(key)}[${i}]\` must be a list of texts`,
      );
      return [];
    });
  }

  /** Reads a list whose items may be plain values or mappings. */
  items(key: string): readonly ListItem[] {
    return this.#list(key).flatMap(([list, i]): readonly ListItem[] => {
      this.file.tracker.markRead(list, i);
      const item = list[i];
      if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean') return [item];
      const part = SourceMapping.#at(this.file, [...this.path, key, i], item);
      return part === null ? [] : [part];
    });
  }

  #list(key: string): readonly (readonly [readonly unknown[], number])[] {
    const value = this.#get(key);
    if (value === null) return [];
    if (Array.isArray(value)) return value.map((_, i) => [value, i] as const);
    this.#wrong(key, 'a list');
    return [];
  }

  isText(key: string): boolean {
    return typeof this.members[key] === 'string';
  }

  isFlag(key: string): boolean {
    return typeof this.members[key] === 'boolean';
  }

  isList(key: string): boolean {
    return Array.isArray(this.members[key]);
  }

  /** Marks keys and everything below them as read, because their content is not needed. */
  ignore(...keys: readonly string[]): void {
    for (const key of keys) this.file.tracker.settle(this.members, key);
  }

  /** Reports `key` and everything below it as lost, unless empty. In a list of named items, reports each item. */
  lose(key: string, reason: string, severity: Loss['severity'] = 'normal'): void {
    const value = this.members[key];
    this.file.tracker.settle(this.members, key);
    const path = [...this.path, key];
    const names = Array.isArray(value) ? value.map(nameIn) : [];
    if (names.length > 0 && names.every((name) => name !== null)) {
      for (const [i, name] of names.entries())
        this.file.tracker.add([...path, i], false, 'lost', `\`${safeText(name)}\`: ${reason}`, severity);
    } else if (!isEmptyValue(value)) this.file.tracker.add(path, true, 'lost', reason, severity);
  }

  loseAll(reason: string, severity: Loss['severity'] = 'normal'): null {
    for (const key of Object.keys(this.members)) this.file.tracker.settle(this.members, key);
    this.file.tracker.add(this.path, false, 'lost', reason, severity);
    return null;
  }

  /** Reports how `key` was handled, or the whole mapping if `key` is null. */
  note(key: string | null, kind: LossKind, reason: string, severity: Loss['severity'] = 'normal'): void {
    const path = key === null ? this.path : [...this.path, key];
    this.file.tracker.add(path, false, kind, reason, severity);
  }

  /** Cuts `text`, read at `key`, to the maximum length in a manifest. `what` describes the text in the report. */
  cut(key: string, text: string, what: string): string {
    if (text.length <= LONGEST_TEXT) return text;
    this.note(key, 'approximated', `${what} was cut after ${LONGEST_TEXT} characters`);
    return text.slice(0, LONGEST_TEXT);
  }

  declaredTwice(kind: string, name: string): void {
    this.problem('name', CODES.duplicateName, `${kind} \`${safeText(name)}\` is declared twice`);
  }

  problem(key: string | null, code: string, message: string, hint: string | null = null): void {
    this.file.problem(key === null ? this.path : [...this.path, key], code, message, hint);
  }
}

/** An item of a list of plain values and mappings. */
export type ListItem = string | number | boolean | SourceMapping;

/** Returns the `name` of an item; null if the item has no name that is a text. */
function nameIn(item: unknown): string | null {
  return isObject(item) && typeof item['name'] === 'string' ? item['name'] : null;
}

function placeName(path: Path): string {
  const last = path.at(-1);
  if (last === undefined) return 'the file';
  return typeof last === 'number'
    ? `\`${safeText(`${path.at(-2) ?? ''}`)}[${last}]\``
    : `\`${safeText(last)}\``;
}
