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
} from '../../model/manifest/index.js';
import type { Loss, LossKind } from './report.js';

/** A text to import; `file` is what the report calls it. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
}

/** UTF-16 units of one file: ten thousand models or so. */
const LARGEST = 16 * 1024 * 1024;
/** Lines of a report. */
const MOST_LOSSES = 100_000;
/** Keys that nobody knows: a file with more is of another format. */
const MOST_UNREAD = 10_000;

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
  #unread = 0;

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
    if (this.#pending.length >= MOST_LOSSES) this.#tooMany(path, MOST_LOSSES);
    this.#pending.push({ path, onKey, kind, severity, reason });
  }

  problem(path: Path, code: string, message: string, hint: string | null = null, onKey = false): void {
    if (this.#problems.length < 100) this.#problems.push({ path, code, message, hint, onKey });
  }

  /** @throws ManifestProblems with what has the wrong shape */
  check(): void {
    raise(this.#source, this.#problems);
  }

  #tooMany(path: Path, limit: number): void {
    const message = `more than ${limit} constructs of the file do not map`;
    raise(this.#source, [{ path, code: CODES.notAllowed, message, hint: 'is it a file of this format?' }]);
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
      else {
        if (++this.#unread > MOST_UNREAD) this.#tooMany([...path, step], MOST_UNREAD);
        this.add([...path, step], true, 'lost', unknownKey(step), 'normal');
      }
    }
  }
}

function unknownKey(step: PathStep): string {
  return typeof step === 'number' ? 'the item has no counterpart' : `\`${shown(step)}\` has no counterpart`;
}

/** What generated files are full of: keys without a value. */
export function saysNothing(value: unknown): boolean {
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
