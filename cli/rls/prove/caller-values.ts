import type { Relation as Entity } from 'osl-compiler';
import { type Encoder, type Formula, scriptOf } from '../../../policy/proof/index.js';
import type { PgRelation } from '../catalog/catalog.js';
import { type CallerAttribute, type CallerSource, sameSource, sourceText } from '../import/caller-value.js';

/** Setting in which PostgREST and hosted services pass all claims, and the prefix of those for each claim. */
export const CLAIMS_SETTING = 'request.jwt.claims';
export const CLAIM_PREFIX = 'request.jwt.claim.';

/** Where a value of the caller comes from. */
export function sourceOfSetting(name: string): CallerSource {
  return name.startsWith(CLAIM_PREFIX)
    ? { kind: 'claim', path: [name.slice(CLAIM_PREFIX.length)] }
    : { kind: 'setting', name };
}

/** A value that a policy reads from the session, and the attribute that subjects have instead. */
export interface CallerValueName {
  /** Of the attribute; otherwise a name that no attribute has. */
  readonly name: string;
  readonly source: CallerSource;
  readonly list: boolean;
}

/** Names of the values of callers: the same name on both sides of a proof is the same value. */
export class CallerValueNames {
  readonly #names: CallerValueName[];

  /** @param attributes the attributes that subjects have, and where they are from */
  constructor(attributes: readonly CallerAttribute[]) {
    this.#names = [...attributes];
  }

  nameOf(source: CallerSource, list: boolean): string {
    const known = this.#names.findIndex((one) => sameSource(one.source, source));
    const found = this.#names[known];
    if (found !== undefined) {
      if (list && !found.list) this.#names[known] = { ...found, list };
      return found.name;
    }
    const name = `(${sourceText(source)})`;
    this.#names.push({ name, source, list });
    return name;
  }

  named(name: string): CallerValueName | null {
    return this.#names.find((one) => one.name === name) ?? null;
  }
}

/**
 * Values of a column in the rows of a table that a subquery selects; without a column, whether there is such a row. In
 * formulas it is an attribute of the caller, whose name is `id`.
 */
export interface RowSet {
  readonly id: string;
  readonly relation: PgRelation;
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
