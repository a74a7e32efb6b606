import type { ColumnRef, EntityScan, FromLeaf, GovernedScan, Query, SourceId } from './plan.js';
import { allQueries, leavesOf } from './walk.js';

/** True if column `name` of a scan is a sealed key of its relation. */
export type IsKeyOf = (scan: EntityScan | GovernedScan, name: string) => boolean;

const BY_NAME: IsKeyOf = ({ relation }, name) => relation.sealedKeys.includes(name);

/**
 * The sealed columns of a plan: keys that the manifest declares (`entity_key_columns`, a facet's `scalar_indexed`),
 * and columns of derived and common tables and of set operations that pass one through unchanged, in every arm.
 * VALUES, computed columns and row functions have none.
 */
export class SealedKeys {
  readonly #isKeyOf: IsKeyOf;
  readonly #leaves = new Map<SourceId, FromLeaf>();
  readonly #tables = new Map<number, { readonly query: Query; readonly recursive: boolean }>();
  /** True for each sealed column of a common table, by table number and position. */
  readonly #ofTables = new Map<number, readonly boolean[]>();
  /** The same for recursive tables still being computed: columns that were sealed in every step so far. */
  readonly #assumed = new Map<number, readonly boolean[]>();

  constructor(root: Query, isKeyOf: IsKeyOf = BY_NAME) {
    this.#isKeyOf = isKeyOf;
    for (const query of allQueries(root)) {
      if (query.kind === 'select') for (const leaf of leavesOf(query.from)) this.#leaves.set(leaf.id, leaf);
      if (query.kind === 'values') continue;
      for (const { id, query: inner, recursive = false } of query.with)
        this.#tables.set(id, { query: inner, recursive });
    }
  }

  has({ source, name }: ColumnRef): boolean {
    const leaf = this.#leaves.get(source);
    switch (leaf?.kind) {
      case 'entity':
      case 'governed':
        return this.#isKeyOf(leaf, name);
      case 'runtime':
        return leaf.sealed.includes(name);
      case 'derived':
        return this.output(leaf.query, positionOf(name));
      case 'cte':
        return this.table(leaf.table)[positionOf(name)] === true;
      case 'recursion':
        return (this.#assumed.get(leaf.table) ?? this.table(leaf.table))[positionOf(name)] === true;
      default:
        return false;
    }
  }

  /** True if output `position` of `query`, counted from 0, passes a sealed column through. */
  output(query: Query, position: number): boolean {
    if (query.kind === 'values') return false;
    if (query.kind === 'set_operation')
      return this.output(query.left, position) && this.output(query.right, position);
    // Rows that operators have processed cannot be joined by key (decision 84).
    if (query.from?.kind === 'runtime' && query.from.own === true) return false;
    const expr = query.outputs[position]?.expr;
    return expr?.kind === 'column' && this.has(expr);
  }

  /** True for each sealed column of a common table; in a recursive one, only if every step keeps it sealed. */
  table(id: number): readonly boolean[] {
    const known = this.#ofTables.get(id);
    if (known !== undefined) return known;
    const table = this.#tables.get(id);
    if (table === undefined) return [];
    const found = table.recursive ? this.#afterAllSteps(id, table.query) : this.#outputs(table.query);
    this.#ofTables.set(id, found);
    return found;
  }

  #outputs(query: Query): readonly boolean[] {
    const width = query.kind === 'select' ? query.outputs.length : query.columns.length;
    return Array.from({ length: width }, (_, i) => this.output(query, i));
  }

  #afterAllSteps(id: number, query: Query): readonly boolean[] {
    if (query.kind !== 'set_operation') return [];
    let sealed = this.#outputs(query.left);
    for (;;) {
      this.#assumed.set(id, sealed);
      const after = sealed.map((s, i) => s && this.output(query.right, i));
      if (after.every((s, i) => s === sealed[i])) break;
      sealed = after;
    }
    this.#assumed.delete(id);
    return sealed;
  }
}

/** Returns the position of column `c1`, `c2`, …, counted from 0. */
function positionOf(name: string): number {
  return Number(name.slice(1)) - 1;
}
