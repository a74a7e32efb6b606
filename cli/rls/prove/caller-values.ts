import type { Relation as Entity } from 'osl-compiler';
import { type Encoder, type Formula, scriptOf } from '../../../policy/proof/index.js';
import type { PgRelation } from '../catalog/catalog.js';
import { type CallerAttribute, type CallerSource, sameSource, sourceText } from '../import/caller-value.js';

/** Setting in which PostgREST and hosted services pass all claims, and the prefix of the settings for single claims. */
export const CLAIMS_SETTING = 'request.jwt.claims';
export const CLAIM_PREFIX = 'request.jwt.claim.';

/** The source of a value read from a setting: a claim if the name has the prefix for claims. */
export function sourceOfSetting(name: string): CallerSource {
  return name.startsWith(CLAIM_PREFIX)
    ? { kind: 'claim', path: [name.slice(CLAIM_PREFIX.length)] }
    : { kind: 'setting', name };
}

/** A value that row security reads from the session, with the attribute that stands for it in the policy. */
export interface CallerValueName {
  /** Name of the attribute; if there is none, a name in parentheses, which no attribute can have. */
  readonly name: string;
  readonly source: CallerSource;
  readonly list: boolean;
}

/** Assigns names to values of callers. On both sides of a proof, the same name means the same value. */
export class CallerValueNames {
  readonly #names: CallerValueName[];

  /** @param attributes attributes of subjects, with the sources of their values */
  constructor(attributes: readonly CallerAttribute[]) {
    this.#names = [...attributes];
  }

  nameOf(source: CallerSource, list: boolean): string {
    const found = this.#names.find((one) => one.list === list && sameSource(one.source, source));
    if (found !== undefined) return found.name;
    const name = `(${sourceText(source)}${list ? ', a list' : ''})`;
    this.#names.push({ name, source, list });
    return name;
  }

  named(name: string): CallerValueName | null {
    return this.#names.find((one) => one.name === name) ?? null;
  }
}

/**
 * The values of a column in the table rows that a subquery selects, or the existence of such a row if there is no
 * column. In formulas, the set is an attribute of the caller named `id`.
 */
export interface RowSet {
  readonly id: string;
  readonly relation: PgRelation;
  /** Null if the model does not have the table. */
  readonly entity: Entity | null;
  /** Physical name; null if only the existence of a row counts. */
  readonly column: string | null;
  /** Encoder for a row of the table. */
  readonly encoder: Encoder;
  /** True for the selected rows. */
  readonly condition: Formula;
}

/** The row sets that occur in conditions; equal sets are kept once. */
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

  /** The set with this id; null if there is none. */
  named(id: string): RowSet | null {
    return this.#ids.get(id) ?? null;
  }
}
