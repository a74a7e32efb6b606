import { assertNever, queryError } from '../errors.js';
import { LIMITS } from '../limits.js';
import type { Expr, Query, SourceId } from '../plan.js';
import { allQueries, childrenOf, exprsOf, leavesOf, queryOf } from '../walk.js';

/**
 * Refuses a statement that means more than it says: `select x||x from (select x||x from …)` doubles with each level, in
 * the planner of the engine as in every walk that looks through derived columns. What each value is when all of that is
 * written out is counted here without writing it out: once for each node, so in linear time.
 *
 * @throws QueryError E0511, 54001
 */
export function requireExpandable(root: Query): void {
  const levels = allQueries(root);
  const sizes = new Sizes(levels);
  let whole = 0;
  for (const query of levels) {
    for (const expr of exprsOf(query)) whole += sizes.of(expr);
    if (whole > LIMITS.expanded)
      throw queryError('tooComplex', {
        what: 'the number of its values, derived columns written out,',
        limit: LIMITS.expanded,
      });
  }
}

class Sizes {
  readonly #queries = new Map<SourceId, Query>();
  readonly #known = new Map<Expr, number>();
  /** By FROM item and column. */
  readonly #columns = new Map<SourceId, Map<string, number>>();

  constructor(levels: readonly Query[]) {
    const tables = new Map<number, Query>();
    for (const query of levels)
      if (query.kind !== 'values') for (const table of query.with) tables.set(table.id, table.query);
    for (const query of levels) {
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) {
        const of =
          leaf.kind === 'derived' ? leaf.query : leaf.kind === 'cte' ? tables.get(leaf.table) : undefined;
        if (of !== undefined) this.#queries.set(leaf.id, of);
      }
    }
  }

  /** Values that `expr` is, written out. Sums may lose their last digits, never that they are large. */
  of(expr: Expr): number {
    if (expr.kind === 'column') return 1 + this.#column(expr.source, expr.name);
    const children = childrenOf(expr);
    const inner = queryOf(expr);
    if (children.length === 0 && inner === null) return 1;
    const known = this.#known.get(expr);
    if (known !== undefined) return known;
    let size = 1;
    for (const child of children) size += this.of(child);
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
        return expr === undefined ? 0 : this.of(expr);
      }
      case 'set_operation':
        return this.#output(query.left, index) + this.#output(query.right, index);
      case 'values':
        return query.rows.reduce((sum, row) => sum + (row[index] === undefined ? 0 : this.of(row[index])), 0);
      default:
        return assertNever(query);
    }
  }
}
