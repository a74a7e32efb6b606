import { assertNever } from '../errors/errors.js';
import type { CommonTable, Expr, FromItem, Query } from './plan.js';
import { changed, mapChildren, mapped, mapSort, nestingIn } from './walk.js';

/** Callbacks of `mapQuery`. If one is missing, its nodes stay unchanged. */
export interface QueryVisitor {
  /** Called for each top-level expression of every query, including conditions in FROM. */
  readonly expr?: (e: Expr) => Expr;
  /** Called for each leaf of every FROM. */
  readonly item?: (i: FromItem) => FromItem;
  /** Called for each query, after everything in it. */
  readonly query?: (q: Query) => Query;
}

/**
 * Rewrites `query` with `visit`, innermost first. Queries inside expressions are visited too, each once: expressions
 * that share a query still share it afterwards.
 */
export function mapQuery(query: Query, visit: QueryVisitor): Query {
  const known = new Map<Query, Query>();
  const q = (inner: Query): Query => {
    let after = known.get(inner);
    if (after === undefined) {
      const rebuilt = mapLevel(inner, visit, q);
      after = visit.query === undefined ? rebuilt : visit.query(rebuilt);
      known.set(inner, after);
    }
    return after;
  };
  return q(query);
}

function mapLevel(query: Query, visit: QueryVisitor, q: (inner: Query) => Query): Query {
  const deep = (e: Expr): Expr => {
    const below = mapChildren(e, deep, q);
    return visit.expr === undefined ? below : visit.expr(below);
  };
  // Expressions are visited only if something in them can change.
  const values = visit.expr !== undefined || nestingIn(query).length > 0;
  const all = (list: readonly Expr[]): readonly Expr[] => mapped(list, deep);
  const maybe = (e: Expr | null): Expr | null => (e === null ? null : deep(e));
  const common = (tables: readonly CommonTable[]): readonly CommonTable[] =>
    mapped(tables, (t) => changed(t, { query: q(t.query) }));
  switch (query.kind) {
    case 'values':
      return values ? changed(query, { rows: mapped(query.rows, all) }) : query;
    case 'set_operation': {
      const operands = { with: common(query.with), left: q(query.left), right: q(query.right) };
      if (!values) return changed(query, operands);
      return changed(query, {
        ...operands,
        orderBy: mapSort(query.orderBy, deep),
        limit: maybe(query.limit),
        offset: maybe(query.offset),
      });
    }
    case 'select': {
      const from = query.from === null ? null : mapFrom(query.from, visit, values ? deep : itself, q);
      const sources = { with: common(query.with), from };
      if (!values) return changed(query, sources);
      return changed(query, {
        ...sources,
        where: all(query.where),
        groupBy: all(query.groupBy),
        having: all(query.having),
        outputs: mapped(query.outputs, (o) => changed(o, { expr: deep(o.expr) })),
        distinctOn: all(query.distinctOn),
        orderBy: mapSort(query.orderBy, deep),
        limit: maybe(query.limit),
        offset: maybe(query.offset),
      });
    }
    default:
      return assertNever(query);
  }
}

const itself = (e: Expr): Expr => e;

function mapFrom(
  item: FromItem,
  visit: QueryVisitor,
  deep: (e: Expr) => Expr,
  q: (query: Query) => Query,
): FromItem {
  const leaf = visit.item ?? ((i: FromItem): FromItem => i);
  switch (item.kind) {
    case 'join': {
      const left = mapFrom(item.left, visit, deep, q);
      const right = mapFrom(item.right, visit, deep, q);
      return changed(item, { left, right, on: mapped(item.on, deep) });
    }
    case 'derived':
      return leaf(changed(item, { query: q(item.query) }));
    case 'spine':
      return leaf(changed(item, { bounds: q(item.bounds) }));
    case 'rows':
      return leaf(changed(item, { args: mapped(item.args, deep) }));
    case 'entity':
    case 'governed':
    case 'cte':
    case 'recursion':
    case 'runtime':
      return leaf(item);
    default:
      return assertNever(item);
  }
}
