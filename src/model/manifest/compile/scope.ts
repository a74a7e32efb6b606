import { nearest, type Relation } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path, UnplacedDiagnostic } from '../diagnostic.js';

/** "perhaps you meant …", or null if no candidate is near. */
export function perhaps(name: string, candidates: Iterable<string>): string | null {
  // A manifest may hold text of any length where a name should be.
  const near = nearest(name.slice(0, LONGEST_NAME), candidates);
  return near === null ? null : `perhaps you meant \`${near}\``;
}

const LONGEST_NAME = 130;

/** Relations by name. */
export type RelationMap = ReadonlyMap<string, Relation>;

/** Collects all diagnostics, so that an author sees everything at once. */
export class Problems {
  readonly #list: UnplacedDiagnostic[] = [];
  /** Relations that are declared but could not be compiled: what refers to them is not wrong for that. */
  readonly broken = new Set<string>();

  add(code: string, path: Path, message: string, hint: string | null = null, onKey = false): void {
    this.#list.push({ code, path, message, hint, onKey });
  }

  /** `name` at `path` is no `what`; the nearest of `known` is proposed. */
  unknown(path: Path, what: string, name: string, known: Iterable<string>): void {
    // Past the first hundred nothing is shown, so nothing need be compared.
    const hint = this.#list.length < 100 ? perhaps(name, known) : null;
    this.add(CODES.unknownReference, path, `${what} \`${name}\` is not declared`, hint);
  }

  get list(): readonly UnplacedDiagnostic[] {
    return this.#list;
  }
}

/** Members of an optional part of a document, in file order. */
export function membersOf<T>(
  part: Readonly<Record<string, T>> | undefined,
): readonly (readonly [string, T])[] {
  return part === undefined ? [] : Object.entries(part);
}
