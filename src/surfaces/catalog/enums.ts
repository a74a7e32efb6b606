import { type Column, enumName, storedType } from 'osl-compiler';

/** An enum as one caller's catalog has it, under its name in the database, whose schema nobody is told. */
interface Named {
  readonly name: string;
  readonly labels: readonly string[];
}

/**
 * The enums of columns that a caller sees in the clear. Of two with one name the second has none, and its columns are
 * text; so is one that is called as an entity, whose rows have a type of that name.
 */
export class Enums {
  readonly #taken: Set<string>;
  readonly #known = new Map<string, Named>();

  constructor(relations: Iterable<string>) {
    this.#taken = new Set(relations);
  }

  get all(): readonly Named[] {
    return [...this.#known.values()];
  }

  /** The name of the enum that `column` has; null where it has none that is declared. */
  nameOf({ stored, labels }: Column): string | null {
    if (stored === undefined || labels === undefined || storedType(stored)?.isEnum !== true) return null;
    const key = JSON.stringify([stored, labels]);
    const known = this.#known.get(key);
    if (known !== undefined) return known.name;
    const name = enumName(stored);
    if (this.#taken.has(name)) return null;
    this.#taken.add(name);
    this.#known.set(key, Object.freeze({ name, labels }));
    return name;
  }
}
