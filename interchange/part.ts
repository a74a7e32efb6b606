import { isObject } from '../src/base/is-object.js';
import { CODES, type Path } from '../src/model/manifest/index.js';
import { safeText } from './names.js';
import { isEmptyValue, type Loss, type LossKind, type SourceFile, type SourcePlace } from './source.js';

type PartMembers = Readonly<Record<string, unknown>>;

const LONGEST_TEXT = 4000;

/** A mapping of a source, read key by key. Keys that are never read are reported as lost. */
export class Part {
  readonly file: SourceFile;
  readonly path: Path;
  readonly members: PartMembers;

  private constructor(file: SourceFile, path: Path, members: PartMembers) {
    this.file = file;
    this.path = path;
    this.members = members;
  }

  /** The root of a file; null if it is not a mapping, which is recorded as a problem. */
  static ofFile(file: SourceFile): Part | null {
    return Part.#at(file, [], file.root);
  }

  static #at(file: SourceFile, path: Path, value: unknown): Part | null {
    if (isObject(value)) return new Part(file, path, value);
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

  /** A required text; if it is missing, records a problem and returns an empty string. */
  needText(key: string): string {
    const value = this.text(key);
    if (value !== null && value !== '') return value;
    if (!this.has(key) || value === '') {
      const message = `${placeName(this.path)} has no \`${key}\``;
      this.file.problem(this.path, CODES.missingKey, message, null, true);
    }
    return '';
  }

  /** A text, or a number or boolean converted to text, as in `expr: 1`. */
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

  parts(key: string): readonly Part[] {
    const path = [...this.path, key];
    return this.#list(key).flatMap(([list, i]) => {
      this.file.tracker.markRead(list, i);
      const part = Part.#at(this.file, [...path, i], list[i]);
      return part === null ? [] : [part];
    });
  }

  /** A list of texts; a single text counts as a list of one. */
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

  /** A list whose items may take several forms. Mappings are returned as parts. */
  items(key: string): readonly ListItem[] {
    return this.#list(key).flatMap(([list, i]): readonly ListItem[] => {
      this.file.tracker.markRead(list, i);
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

  isFlag(key: string): boolean {
    return typeof this.members[key] === 'boolean';
  }

  isList(key: string): boolean {
    return Array.isArray(this.members[key]);
  }

  /** Marks keys as read because their content is redundant. */
  ignore(...keys: readonly string[]): void {
    for (const key of keys) this.file.tracker.settle(this.members, key);
  }

  /** Reports `key` and everything below it as lost, unless it is absent or empty. Items of a list are named. */
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

  /** Cuts `text`, read at `key`, to the maximum length in a manifest. `what` names it in the report. */
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
export type ListItem = string | number | boolean | Part;

/** The `name` of an item; null if it has none. */
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
