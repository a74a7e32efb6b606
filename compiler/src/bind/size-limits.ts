import { assertNever, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import type { Expr, Query, SourceId } from '../plan/plan.js';
import {
  allQueries,
  childrenOf,
  exprsOf,
  leavesOf,
  nestingIn,
  partsOf,
  queryOf,
  visitExpr,
} from '../plan/walk.js';

/** The number of values and FROM items in a query's SQL text, including nested queries. */
interface SqlSize {
  readonly values: number;
  readonly items: number;
}

const SIZES = new WeakMap<Query, SqlSize>();

/**
 * Returns the size of `query` as SQL text. A query that appears in several places is measured once but counted for each
 * place. Very large sums are inexact but still exceed any limit.
 */
function sqlSize(query: Query): SqlSize {
  const known = SIZES.get(query);
  if (known !== undefined) return known;
  let [values, items] = [0, query.kind === 'select' ? leavesOf(query.from).length : 0];
  const count = (): void => {
    values++;
  };
  for (const expr of exprsOf(query)) visitExpr(expr, count);
  for (const inner of [...partsOf(query), ...nestingIn(query).map((n) => n.query)]) {
    const size = sqlSize(inner);
    values += size.values;
    items += size.items;
  }
  const size = { values, items };
  SIZES.set(query, size);
  return size;
}

/** Returns the size of `expr` as SQL text. */
export function sqlSizeOf(expr: Expr): SqlSize {
  let [values, items] = [0, 0];
  visitExpr(expr, (e) => {
    values++;
    const inner = queryOf(e);
    if (inner === null) return;
    const size = sqlSize(inner);
    values += size.values;
    items += size.items;
  });
  return { values, items };
}

/** Refuses a query whose SQL text would exceed the limits. @throws QueryError E0511, 54001 */
export function requireSqlSize(query: Query): void {
  requireSize(sqlSize(query), 'with what stands in several places written out');
}

/**
 * Refuses a statement that grows exponentially when derived columns are inlined, as Postgres' planner and the
 * compiler's own passes do; for example, nested `select x||x as x from (...)`. Common tables that Postgres inlines are
 * counted at each place that reads them. The size is computed in linear time, without inlining.
 *
 * @throws QueryError E0511, 54001
 */
export function requireExpandable(root: Query): void {
  requireSize(new Expansion(root).sizeOf(root), 'a NOT MATERIALIZED one wherever it is read');
}

function requireSize({ values, items }: SqlSize, counted: string): void {
  if (values > LIMITS.expanded)
    throw queryError('tooComplex', {
      what: 'the number of its values, derived columns written out,',
      limit: LIMITS.expanded,
    });
  if (items > LIMITS.fromItems)
    throw queryError('tooComplex', {
      what: `the number of its tables, ${counted},`,
      limit: LIMITS.fromItems,
    });
}

class Expansion {
  readonly #queries = new Map<SourceId, Query>();
  readonly #inlined = new Map<number, Query>();
  readonly #sizes = new Map<Query, SqlSize>();
  readonly #known = new Map<Expr, number>();
  /** Number of values in the definition of each column, by FROM item and column name. */
  readonly #columns = new Map<SourceId, Map<string, number>>();

  constructor(root: Query) {
    const levels = allQueries(root);
    const leaves = levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
    const uses = new Map<number, number>();
    for (const l of leaves) if (l.kind === 'cte') uses.set(l.table, (uses.get(l.table) ?? 0) + 1);
    const tables = new Map<number, Query>();
    for (const query of levels) {
      if (query.kind === 'values') continue;
      for (const { id, query: table, materialized, recursive } of query.with) {
        tables.set(id, table);
        const used = uses.get(id) ?? 0;
        const inlined = used > 0 && (materialized === false || (materialized === null && used === 1));
        if (inlined && recursive !== true) this.#inlined.set(id, table);
      }
    }
    for (const leaf of leaves) {
      const of =
        leaf.kind === 'derived' ? leaf.query : leaf.kind === 'cte' ? tables.get(leaf.table) : undefined;
      if (of !== undefined) this.#queries.set(leaf.id, of);
    }
  }

  sizeOf(query: Query): SqlSize {
    const known = this.#sizes.get(query);
    if (known !== undefined) return known;
    const inside = nestingIn(query).map((n) => n.query);
    let [values, items] = [0, 0];
    const add = (inner: Query | undefined): void => {
      if (inner === undefined) return;
      const size = this.sizeOf(inner);
      values += size.values;
      items += size.items;
    };
    for (const expr of exprsOf(query)) values += this.#of(expr);
    inside.forEach(add);
    if (query.kind !== 'values')
      for (const { id, query: table } of query.with) if (!this.#inlined.has(id)) add(table);
    if (query.kind === 'set_operation') [query.left, query.right].forEach(add);
    if (query.kind === 'select')
      for (const leaf of leavesOf(query.from)) {
        items++;
        if (leaf.kind === 'derived') add(leaf.query);
        else if (leaf.kind === 'spine') add(leaf.bounds);
        else if (leaf.kind === 'cte') add(this.#inlined.get(leaf.table));
      }
    const size = { values, items };
    this.#sizes.set(query, size);
    return size;
  }

  #of(expr: Expr): number {
    if (expr.kind === 'column') return 1 + this.#column(expr.source, expr.name);
    const children = childrenOf(expr);
    const inner = queryOf(expr);
    if (children.length === 0 && inner === null) return 1;
    const known = this.#known.get(expr);
    if (known !== undefined) return known;
    let size = 1;
    for (const child of children) size += this.#of(child);
    if (inner !== null) size += this.#output(inner, 0);
    this.#known.set(expr, size);
    return size;
  }

  #column(source: SourceId, name: string): number {
    const query = this.#queries.get(source);
    if (query === undefined) return 0;
    const columns = this.#columns.get(source) ?? new Map<string, number>();
    this.#columns.set(source, columns);
    const known = columns.get(name);
    if (known !== undefined) return known;
    const size = this.#output(query, Number(name.slice(1)) - 1);
    columns.set(name, size);
    return size;
  }

  #output(query: Query, index: number): number {
    switch (query.kind) {
      case 'select': {
        const expr = query.outputs[index]?.expr;
        return expr === undefined ? 0 : this.#of(expr);
      }
      case 'set_operation':
        return this.#output(query.left, index) + this.#output(query.right, index);
      case 'values':
        return query.rows.reduce(
          (sum, row) => sum + (row[index] === undefined ? 0 : this.#of(row[index])),
          0,
        );
      default:
        return assertNever(query);
    }
  }
}
