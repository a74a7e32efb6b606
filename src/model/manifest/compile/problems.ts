import { nearest, type Relation } from 'osl-compiler';
import { CODES, type Path, type UnplacedDiagnostic } from '../diagnostic.js';

/** "perhaps you meant …", or null if no candidate is similar. */
export function suggestion(name: string, candidates: Iterable<string>): string | null {
  // A manifest may contain a text of any length where a name is expected.
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
