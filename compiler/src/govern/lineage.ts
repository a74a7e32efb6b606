import { InternalError } from '../errors.js';
import type { ColumnRef, EntityScan, Expr, FromItem, GovernedScan, Query, SourceId } from '../plan.js';
import { allQueries, leavesOf, visitExpr } from '../walk.js';

/** Where the columns of every FROM item of a statement come from. */
export class Lineage {
  readonly #scans = new Map<SourceId, EntityScan | GovernedScan>();
  readonly #queries = new Map<SourceId, Query>();
  readonly #runtime = new Set<SourceId>();

  constructor(root: Query) {
    const tables = new Map<number, Query>();
    const refs: { readonly id: SourceId; readonly table: number }[] = [];
    for (const query of allQueries(root)) {
      if (query.kind === 'values') continue;
      for (const t of query.with) tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) this.#add(leaf, refs);
    }
    for (const { id, table } of refs) {
      const query = tables.get(table);
      if (query !== undefined) this.#queries.set(id, query);
    }
  }

  #add(
    leaf: Exclude<FromItem, { kind: 'join' }>,
    refs: { readonly id: SourceId; readonly table: number }[],
  ): void {
    if (leaf.kind === 'entity' || leaf.kind === 'governed') this.#scans.set(leaf.id, leaf);
    else if (leaf.kind === 'derived') this.#queries.set(leaf.id, leaf.query);
    else if (leaf.kind === 'spine') this.#queries.set(leaf.id, leaf.bounds);
    else if (leaf.kind === 'cte') refs.push({ id: leaf.id, table: leaf.table });
    else this.#runtime.add(leaf.id);
  }

  scanOf(source: SourceId): EntityScan | GovernedScan | null {
    return this.#scans.get(source) ?? null;
  }

  /**
   * The expressions that make up a derived column: one, or one per operand of a set operation. None for a column of
   * a runtime relation, whose rows hold only what the caller may see.
   */
  definitionsOf(ref: ColumnRef): readonly Expr[] {
    if (this.#runtime.has(ref.source)) return [];
    const query = this.#queries.get(ref.source);
    if (query === undefined) throw new InternalError(`column ${ref.name} refers to no FROM item`);
    return outputsAt(query, Number(ref.name.slice(1)) - 1);
  }

  /** Every column of a runtime relation that `expr` is computed from, through derived tables and scalar subqueries. */
  runtimeColumnsUnder(expr: Expr): readonly ColumnRef[] {
    const found: ColumnRef[] = [];
    visitExpr(expr, (e) => {
      const inner =
        e.kind === 'scalar_query'
          ? this.outputsOf(e.query)
          : e.kind === 'column' && this.scanOf(e.source) === null
            ? this.definitionsOf(e)
            : [];
      for (const definition of inner) found.push(...this.runtimeColumnsUnder(definition));
      if (e.kind === 'column' && this.#runtime.has(e.source)) found.push(e);
    });
    return found;
  }

  /** The expressions behind a query's only output, or its first. */
  outputsOf(query: Query): readonly Expr[] {
    return outputsAt(query, 0);
  }

  /** Every scanned column that `expr` is computed from, through derived tables, not through subqueries' filters. */
  columnsUnder(expr: Expr): readonly {
    readonly scan: EntityScan | GovernedScan;
    readonly name: string;
    readonly direct: boolean;
  }[] {
    const found: { scan: EntityScan | GovernedScan; name: string; direct: boolean }[] = [];
    const collect = (root: Expr, direct: boolean): void => {
      visitExpr(root, (e) => {
        if (e.kind === 'scalar_query') {
          for (const inner of this.outputsOf(e.query)) collect(inner, false);
        }
        if (e.kind !== 'column') return;
        const scan = this.scanOf(e.source);
        const bare = direct && e === root;
        if (scan !== null) found.push({ scan, name: e.name, direct: bare });
        else for (const definition of this.definitionsOf(e)) collect(definition, bare);
      });
    };
    collect(expr, true);
    return found;
  }
}

/** The expressions that make up output `index`: one, or one per operand or row. */
export function outputsAt(query: Query, index: number): readonly Expr[] {
  switch (query.kind) {
    case 'select': {
      const output = query.outputs[index];
      return output === undefined ? [] : [output.expr];
    }
    case 'set_operation':
      return [...outputsAt(query.left, index), ...outputsAt(query.right, index)];
    case 'values':
      return query.rows.flatMap((r) => r[index] ?? []);
    default: {
      const unknown: never = query;
      throw new InternalError(`unexpected query ${String(unknown)}`);
    }
  }
}
