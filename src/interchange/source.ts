import {
  CODES,
  ManifestProblems,
  type Path,
  type PathStep,
  type Problem,
  parseSource,
  pointer,
  raise,
  type YamlSource,
} from '../manifest/index.js';
import type { Loss, LossKind } from './report.js';

/** A text to import; `file` is what the report calls it. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
}

/** UTF-16 units of one file: ten thousand models or so. */
const LARGEST = 16 * 1024 * 1024;
/** A report longer than this is of the wrong file. */
const MOST_LOSSES = 10_000;

type Members = Readonly<Record<string, unknown>>;

interface Pending {
  readonly path: Path;
  readonly onKey: boolean;
  readonly kind: LossKind;
  readonly severity: Loss['severity'];
  readonly reason: string;
}

/**
 * One file of a foreign format, and an account of what was read of it. Whatever nobody read is reported as lost when
 * the report is made, so that no key is left out without a word.
 */
export class SourceFile {
  readonly file: string;
  readonly root: unknown;
  readonly #source: YamlSource;
  readonly #read = new WeakMap<object, Set<PathStep>>();
  readonly #settled = new WeakMap<object, Set<PathStep>>();
  readonly #pending: Pending[] = [];
  readonly #problems: Problem[] = [];

  /** @throws ManifestProblems where the text is no YAML, too large, too deep, or names a key twice */
  constructor({ file, text }: SourceText) {
    if (text.length > LARGEST) throw tooLarge(file);
    this.#source = parseSource(text, file);
    this.file = file;
    this.root = this.#source.value;
  }

  markRead(parent: object, step: PathStep): void {
    mark(this.#read, parent, step);
  }

  /** Nothing below is to be reported a second time. */
  settle(parent: object, step: PathStep): void {
    mark(this.#read, parent, step);
    mark(this.#settled, parent, step);
  }

  add(path: Path, onKey: boolean, kind: LossKind, reason: string, severity: Loss['severity']): void {
    if (this.#pending.length >= MOST_LOSSES) {
      const message = `more than ${MOST_LOSSES} constructs of the file do not map`;
      raise(this.#source, [{ path, code: CODES.notAllowed, message, hint: 'is it a file of this format?' }]);
    }
    this.#pending.push({ path, onKey, kind, severity, reason });
  }

  problem(path: Path, code: string, message: string, hint: string | null = null, onKey = false): void {
    if (this.#problems.length < 100) this.#problems.push({ path, code, message, hint, onKey });
  }

  /** @throws ManifestProblems with what has the wrong shape */
  check(): void {
    raise(this.#source, this.#problems);
  }

  /** Everything that did not map, in file order. Ask once, at the end. */
  losses(): readonly Loss[] {
    this.#leftover(this.root, []);
    const placed = this.#pending.map(({ path, onKey, kind, severity, reason }): Loss => {
      const range = this.#source.locate(path, { onKey });
      return Object.freeze({ kind, severity, file: this.file, range, path: pointer(path), reason });
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
      if (settled?.has(step) === true || saysNothing(member)) continue;
      if (read?.has(step) === true) this.#leftover(member, [...path, step]);
      else this.add([...path, step], true, 'lost', unknownKey(step), 'normal');
    }
  }
}

function unknownKey(step: PathStep): string {
  return typeof step === 'number' ? 'the item has no counterpart' : `\`${shown(step)}\` has no counterpart`;
}

/** What generated files are full of: keys without a value. */
function saysNothing(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

function mark(marks: WeakMap<object, Set<PathStep>>, parent: object, step: PathStep): void {
  const known = marks.get(parent);
  if (known === undefined) marks.set(parent, new Set([step]));
  else known.add(step);
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

/** A name of the author's in a message: short, and without what would draw on a terminal. */
export function shown(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return short.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '\ufffd');
}

/** A place in a file, for what is found out later. */
export interface Place {
  readonly file: SourceFile;
  readonly path: Path;
}

/** Reports at `place` itself; what is below it counts as told. */
export function report(
  place: Place,
  kind: LossKind,
  reason: string,
  severity: Loss['severity'] = 'normal',
): void {
  place.file.add(place.path, false, kind, reason, severity);
}

/** A mapping of a source, read key by key. What is read has to be used or reported; the rest reports itself. */
export class Part {
  readonly file: SourceFile;
  readonly path: Path;
  readonly members: Members;

  private constructor(file: SourceFile, path: Path, members: Members) {
    this.file = file;
    this.path = path;
    this.members = members;
  }

  /** The whole of a file; null after a problem where it is no mapping. */
  static ofFile(file: SourceFile): Part | null {
    return Part.#at(file, [], file.root);
  }

  static #at(file: SourceFile, path: Path, value: unknown): Part | null {
    if (isMembers(value)) return new Part(file, path, value);
    file.problem(path, CODES.wrongType, `${placeName(path)} must be a mapping`);
    return null;
  }

  get place(): Place {
    return this;
  }

  at(key: string): Place {
    return { file: this.file, path: [...this.path, key] };
  }

  keys(): readonly string[] {
    return Object.keys(this.members);
  }

  /** Whether the key is there with a value. */
  has(key: string): boolean {
    return this.members[key] !== undefined && this.members[key] !== null;
  }

  #get(key: string): unknown {
    this.file.markRead(this.members, key);
    return this.members[key] ?? null;
  }

  #wrong(key: string, wanted: string): null {
    this.file.problem([...this.path, key], CODES.wrongType, `\`${shown(key)}\` must be ${wanted}`);
    return null;
  }

  text(key: string): string | null {
    const value = this.#get(key);
    return value === null || typeof value === 'string' ? value : this.#wrong(key, 'text');
  }

  /** A name or another text that must be there; empty after a problem. */
  needText(key: string): string {
    const value = this.text(key);
    if (value !== null && value !== '') return value;
    if (!this.has(key) || value === '') {
      const message = `${placeName(this.path)} has no \`${key}\``;
      this.file.problem(this.path, CODES.missingKey, message, null, true);
    }
    return '';
  }

  /** Text, or a number or boolean as its text: `expr: 1`. */
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

  child(key: string): Part | null {
    const value = this.#get(key);
    return value === null ? null : Part.#at(this.file, [...this.path, key], value);
  }

  /** A list of mappings. */
  parts(key: string): readonly Part[] {
    const path = [...this.path, key];
    return this.#list(key).flatMap(([list, i]) => {
      this.file.markRead(list, i);
      const part = Part.#at(this.file, [...path, i], list[i]);
      return part === null ? [] : [part];
    });
  }

  /** A list of texts, or one text for a list of it alone. */
  texts(key: string): readonly string[] {
    if (typeof this.members[key] === 'string') return [this.text(key) ?? ''];
    return this.#list(key).flatMap(([list, i]) => {
      this.file.markRead(list, i);
      const item = list[i];
      if (typeof item === 'string') return [item];
      this.file.problem([...this.path, key, i], CODES.wrongType, `\`${shown(key)}[${i}]\` must be text`);
      return [];
    });
  }

  /** A list of lists of texts. */
  lists(key: string): readonly (readonly string[])[] {
    return this.#list(key).flatMap(([list, i]): readonly (readonly string[])[] => {
      this.file.markRead(list, i);
      const inner = list[i];
      if (Array.isArray(inner) && inner.every((t) => typeof t === 'string')) {
        for (const j of inner.keys()) this.file.markRead(inner, j);
        return [inner];
      }
      this.file.problem(
        [...this.path, key, i],
        CODES.wrongType,
        `\`${shown(key)}[${i}]\` must be a list of texts`,
      );
      return [];
    });
  }

  /** A list whose items have several forms, as they stand. Items that are mappings come as parts. */
  items(key: string): readonly Item[] {
    return this.#list(key).flatMap(([list, i]): readonly Item[] => {
      this.file.markRead(list, i);
      const item = list[i];
      if (typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean') return [item];
      const part = Part.#at(this.file, [...this.path, key, i], item);
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

  isList(key: string): boolean {
    return Array.isArray(this.members[key]);
  }

  /** What only says again what stands elsewhere. */
  ignore(...keys: readonly string[]): void {
    for (const key of keys) this.file.settle(this.members, key);
  }

  /** Reports `key`, whatever its value, and all below it; nothing where it is absent or empty. */
  lose(key: string, reason: string, severity: Loss['severity'] = 'normal'): void {
    const value = this.members[key];
    this.file.settle(this.members, key);
    if (!saysNothing(value)) this.file.add([...this.path, key], true, 'lost', reason, severity);
  }

  /** Reports all of this mapping as lost. */
  loseAll(reason: string, severity: Loss['severity'] = 'normal'): void {
    for (const key of Object.keys(this.members)) this.file.settle(this.members, key);
    this.file.add(this.path, false, 'lost', reason, severity);
  }

  /** Reports what was made of `key`, or of all of this where there is none. */
  note(key: string | null, kind: LossKind, reason: string, severity: Loss['severity'] = 'normal'): void {
    const path = key === null ? this.path : [...this.path, key];
    this.file.add(path, false, kind, reason, severity);
  }

  problem(key: string | null, code: string, message: string, hint: string | null = null): void {
    this.file.problem(key === null ? this.path : [...this.path, key], code, message, hint);
  }
}

/** An item of a list that may hold plain values and mappings. */
export type Item = string | number | boolean | Part;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function placeName(path: Path): string {
  const last = path.at(-1);
  if (last === undefined) return 'the file';
  return typeof last === 'number' ? `\`${shown(`${path.at(-2) ?? ''}`)}[${last}]\`` : `\`${shown(last)}\``;
}
