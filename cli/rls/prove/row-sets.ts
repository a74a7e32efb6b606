import type { Relation as Entity } from 'osl-compiler';
import { type Encoder, type Formula, scriptOf } from '../../../policy/proof/index.js';
import type { Relation } from '../catalog/catalog.js';

/**
 * Values of a column in the rows of a table that a subquery selects; without a column, whether there is such a row. In
 * formulas it is an attribute of the caller, whose name is `id`.
 */
export interface RowSet {
  readonly id: string;
  readonly relation: Relation;
  /** Null if the model does not have the table. */
  readonly entity: Entity | null;
  /** Physical name; null if only the existence of a row counts. */
  readonly column: string | null;
  /** Encoder of a row of the table. */
  readonly encoder: Encoder;
  /** True of the rows that are selected. */
  readonly condition: Formula;
}

/** The sets of rows that conditions of one question name. Equal ones are one. */
export class RowSets {
  readonly #sets = new Map<string, RowSet>();
  readonly #ids = new Map<string, RowSet>();

  add(set: Omit<RowSet, 'id'>): RowSet {
    const { relation, column, condition } = set;
    const key = JSON.stringify([relation.id, column, scriptOf([], [[condition]]).text]);
    const known = this.#sets.get(key);
    if (known !== undefined) return known;
    const own = { ...set, id: `rows ${this.#sets.size} of ${relation.schema}.${relation.name}` };
    this.#sets.set(key, own);
    this.#ids.set(own.id, own);
    return own;
  }

  get all(): readonly RowSet[] {
    return [...this.#ids.values()];
  }

  /** Null if no set has the name. */
  named(id: string): RowSet | null {
    return this.#ids.get(id) ?? null;
  }
}
