import { type Column, enumName, storedType } from 'osl-compiler';
import type { EnumModel } from './contents.js';

/**
 * The enums of columns that a caller sees in the clear, under their names in the database, whose schemas nobody is told.
 * Of two with one name the second has none, and its columns are text; so is one whose name, or that of its array type, is
 * an entity's, whose rows have a type of that name.
 */
export class Enums {
  readonly #taken: Set<string>;
  readonly #known = new Map<string, EnumModel>();

  constructor(relations: Iterable<string>) {
    this.#taken = new Set(relations);
  }

  get all(): readonly EnumModel[] {
    return [...this.#known.values()];
  }

  /** The name of the enum that `column` has; null where it has none that is declared. */
  nameOf({ stored, labels }: Column): string | null {
    if (stored === undefined || labels === undefined || storedType(stored)?.isEnum !== true) return null;
    const key = JSON.stringify([stored, labels]);
    const known = this.#known.get(key);
    if (known !== undefined) return known.name;
    const name = enumName(stored);
    if (this.#taken.has(name) || this.#taken.has(`_${name}`)) return null;
    this.#taken.add(name);
    this.#known.set(key, Object.freeze({ name, labels }));
    return name;
  }
}
