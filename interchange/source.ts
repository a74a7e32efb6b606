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

/** Formats a loss for the terminal: `file:line:column: lost reason`. */
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
export class ReadTracker {
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

  /** Everything that could not be converted, in file order. Call it once, at the end. */
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

/** True for an empty value; generated files contain many keys without one. */
export function isEmptyValue(value: unknown): boolean {
  return (
    value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0)
  );
}

function mark(marks: WeakMap<object, Set<PathStep>>, parent: object, step: PathStep): void {
  const known = marks.get(parent);
  if (known === undefined) marks.set(parent, new Set([step]));
  else known.add(step);
}
