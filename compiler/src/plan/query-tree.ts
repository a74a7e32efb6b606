import { assertNever } from '../errors/errors.js';
import type { CommonTable, Expr, FromItem, Query, SourceId } from './plan.js';
import {
  changed,
  exprsOf,
  leavesOf,
  mapChildren,
  mapped,
  mapSort,
  nestingIn,
  nodesIn,
  partsOf,
} from './walk.js';

/** Results of `readsAround`. Queries are immutable, and the ids do not keep a query in memory. */
const OUTWARD = new WeakMap<Query, ReadonlySet<SourceId>>();

/** Returns the outer FROM items whose columns `query` reads, at any depth. */
export function readsAround(query: Query): ReadonlySet<SourceId> {
  const known = OUTWARD.get(query);
  if (known !== undefined) return known;
  const sources = new Set<SourceId>();
  const add = (inner: Query): void => {
    for (const source of readsAround(inner)) sources.add(source);
  };
  for (const { source } of nodesIn(exprsOf(query), 'column')) sources.add(source);
  for (const { query: inner } of nestingIn(query)) add(inner);
  for (const part of partsOf(query)) add(part);
  if (query.kind === 'select') for (const { id } of leavesOf(query.from)) sources.delete(id);
  OUTWARD.set(query, sources);
  return sources;
}

/** Numbers the queries of a statement in the order of `allQueries`, so that those inside one query form a range. */
export class Levels {
  readonly #spans = new Map<Query, { readonly first: number; readonly next: number }>();
  /** For each FROM item, the number of the query whose FROM contains it. */
  readonly #homes = new Map<SourceId, number>();
  #queries = 0;

  constructor(root: Query) {
    this.#add(root);
  }

  #add(query: Query): void {
    const first = this.#queries++;
    if (query.kind === 'select') for (const { id } of leavesOf(query.from)) this.#homes.set(id, first);
    for (const part of partsOf(query)) this.#add(part);
    for (const nesting of nestingIn(query)) this.#add(nesting.query);
    this.#spans.set(query, { first, next: this.#queries });
  }

  /** True if FROM item `source` belongs to `query` or to a query inside it. */
  holds(query: Query, source: SourceId): boolean {
    const [span, home] = [this.#spans.get(query), this.#homes.get(source)];
    return span !== undefined && home !== undefined && home >= span.first && home < span.next;
  }

  /** True if FROM item `source` is in the FROM of `query` itself. */
  isOwn(query: Query, source: SourceId): boolean {
    return this.#homes.get(source) === this.#spans.get(query)?.first;
  }
}

/** Callbacks of `mapQuery`. Nodes without a callback stay unchanged. */
export interface QueryVisitor {
  /** Called for each top-level expression of every query, including conditions in FROM. */
  readonly expr?: (e: Expr) => Expr;
  /** Called for each leaf of every FROM. */
  readonly item?: (i: FromItem) => FromItem;
  /** Called for each query, after all of its parts. */
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
