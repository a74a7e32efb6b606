import { assertNever } from './errors.js';
import type { Expr, FrameBound, FromItem, Query, SortKey } from './plan.js';

/** The values directly below `expr`, in order. Queries below it are `queriesOf`'s. */
export function childrenOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'column':
    case 'base':
    case 'parameter':
    case 'literal':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'scalar_query':
    case 'exists':
    case 'stored_vector':
      return [];
    case 'distance':
      return [expr.to];
    case 'call':
    case 'and':
    case 'or':
    case 'conditional':
      return expr.args;
    case 'operation':
      return expr.left === null ? [expr.right] : [expr.left, expr.right];
    case 'cast':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'in_query':
    case 'attribute_match':
      return [expr.arg];
    case 'distinct_test':
      return [expr.left, expr.right];
    case 'quantified':
      return [expr.arg, expr.array];
    case 'membership':
      return [expr.arg, ...expr.items];
    case 'case':
      return [...expr.arms.flatMap((a) => [a.when, a.result]), expr.otherwise];
    case 'array':
      return expr.items;
    case 'subscript':
      return [expr.arg, expr.index];
    case 'aggregate':
      return [...expr.args, ...optional(expr.filter), ...sortExprs(expr.orderBy)];
    case 'window':
      return [
        ...expr.args,
        ...optional(expr.filter),
        ...expr.partitionBy,
        ...sortExprs(expr.orderBy),
        ...(expr.frame === null ? [] : [...boundExprs(expr.frame.start), ...boundExprs(expr.frame.end)]),
      ];
    default:
      return assertNever(expr);
  }
}

/** The query directly below `expr`, if it has one. */
export function queryOf(expr: Expr): Query | null {
  return expr.kind === 'scalar_query' || expr.kind === 'exists' || expr.kind === 'in_query'
    ? expr.query
    : null;
}

/** Rebuilds `expr` with `f` applied to the values and `q` to the query directly below it. */
export function mapChildren(expr: Expr, f: (e: Expr) => Expr, q: (query: Query) => Query): Expr {
  const all = (list: readonly Expr[]): readonly Expr[] => Object.freeze(list.map(f));
  const maybe = (e: Expr | null): Expr | null => (e === null ? null : f(e));
  switch (expr.kind) {
    case 'column':
    case 'base':
    case 'parameter':
    case 'literal':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'stored_vector':
      return expr;
    case 'distance':
      return Object.freeze({ ...expr, to: f(expr.to) });
    case 'call':
      return Object.freeze({ ...expr, args: all(expr.args) });
    case 'operation':
      return Object.freeze({ ...expr, left: maybe(expr.left), right: f(expr.right) });
    case 'cast':
      return Object.freeze({ ...expr, arg: f(expr.arg) });
    case 'and':
    case 'or':
      return Object.freeze({ ...expr, args: all(expr.args) });
    case 'not':
      return Object.freeze({ ...expr, arg: f(expr.arg) });
    case 'null_test':
      return Object.freeze({ ...expr, arg: f(expr.arg) });
    case 'truth_test':
      return Object.freeze({ ...expr, arg: f(expr.arg) });
    case 'distinct_test':
      return Object.freeze({ ...expr, left: f(expr.left), right: f(expr.right) });
    case 'quantified':
      return Object.freeze({ ...expr, arg: f(expr.arg), array: f(expr.array) });
    case 'membership':
      return Object.freeze({ ...expr, arg: f(expr.arg), items: all(expr.items) });
    case 'case':
      return Object.freeze({
        ...expr,
        arms: Object.freeze(expr.arms.map((a) => Object.freeze({ when: f(a.when), result: f(a.result) }))),
        otherwise: f(expr.otherwise),
      });
    case 'conditional':
      return Object.freeze({ ...expr, args: all(expr.args) });
    case 'array':
      return Object.freeze({ ...expr, items: all(expr.items) });
    case 'subscript':
      return Object.freeze({ ...expr, arg: f(expr.arg), index: f(expr.index) });
    case 'aggregate':
      return Object.freeze({
        ...expr,
        args: all(expr.args),
        filter: maybe(expr.filter),
        orderBy: mapSort(expr.orderBy, f),
      });
    case 'window':
      return Object.freeze({
        ...expr,
        args: all(expr.args),
        filter: maybe(expr.filter),
        partitionBy: all(expr.partitionBy),
        orderBy: mapSort(expr.orderBy, f),
        frame:
          expr.frame === null
            ? null
            : Object.freeze({
                ...expr.frame,
                start: mapBound(expr.frame.start, f),
                end: mapBound(expr.frame.end, f),
              }),
      });
    case 'scalar_query':
      return Object.freeze({ ...expr, query: q(expr.query) });
    case 'exists':
      return Object.freeze({ ...expr, query: q(expr.query) });
    case 'in_query':
      return Object.freeze({ ...expr, arg: f(expr.arg), query: q(expr.query) });
    case 'attribute_match':
      return Object.freeze({ ...expr, arg: f(expr.arg) });
    default:
      return assertNever(expr);
  }
}

export function mapSort(keys: readonly SortKey[], f: (e: Expr) => Expr): readonly SortKey[] {
  return Object.freeze(
    keys.map((k) => Object.freeze({ ...k, by: typeof k.by === 'number' ? k.by : f(k.by) })),
  );
}

/** What `mapQuery` does at each place; what is left out stays as it is. */
export interface QueryVisitor {
  /** To each value of every level, FROM conditions included. */
  readonly expr?: (e: Expr) => Expr;
  /** To each leaf of every FROM. */
  readonly item?: (i: FromItem) => FromItem;
  /** To each query, after everything in it. */
  readonly query?: (q: Query) => Query;
}

/** Rebuilds `query`, innermost first. Queries inside values are visited too. */
export function mapQuery(query: Query, visit: QueryVisitor): Query {
  const rebuilt = mapLevel(query, visit);
  return visit.query === undefined ? rebuilt : visit.query(rebuilt);
}

function mapLevel(query: Query, visit: QueryVisitor): Query {
  const q = (inner: Query): Query => mapQuery(inner, visit);
  const deep = (e: Expr): Expr => {
    const below = mapChildren(e, deep, q);
    return visit.expr === undefined ? below : visit.expr(below);
  };
  const all = (list: readonly Expr[]): readonly Expr[] => Object.freeze(list.map(deep));
  const maybe = (e: Expr | null): Expr | null => (e === null ? null : deep(e));
  const tables = query.kind === 'values' ? [] : query.with;
  const common = Object.freeze(tables.map((t) => Object.freeze({ ...t, query: q(t.query) })));
  switch (query.kind) {
    case 'values':
      return Object.freeze({ ...query, rows: Object.freeze(query.rows.map(all)) });
    case 'set_operation':
      return Object.freeze({
        ...query,
        with: common,
        left: q(query.left),
        right: q(query.right),
        orderBy: mapSort(query.orderBy, deep),
        limit: maybe(query.limit),
        offset: maybe(query.offset),
      });
    case 'select':
      return Object.freeze({
        ...query,
        with: common,
        from: query.from === null ? null : mapFrom(query.from, visit, deep, q),
        where: all(query.where),
        groupBy: all(query.groupBy),
        having: all(query.having),
        outputs: Object.freeze(query.outputs.map((o) => Object.freeze({ ...o, expr: deep(o.expr) }))),
        distinctOn: all(query.distinctOn),
        orderBy: mapSort(query.orderBy, deep),
        limit: maybe(query.limit),
        offset: maybe(query.offset),
      });
    default:
      return assertNever(query);
  }
}

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
      if (!item.sealed) return Object.freeze({ ...item, left, right, on: Object.freeze(item.on.map(deep)) });
      const on = item.on.map((e) => deep(e) as typeof e); // a sealed equality maps to a sealed equality
      return Object.freeze({ ...item, left, right, on: Object.freeze(on) });
    }
    case 'derived':
      return leaf(Object.freeze({ ...item, query: q(item.query) }));
    case 'entity':
    case 'governed':
    case 'cte':
    case 'runtime':
      return leaf(item);
    default:
      return assertNever(item);
  }
}

/** Every FROM leaf of `item`, left to right. */
export function leavesOf(item: FromItem | null): readonly Exclude<FromItem, { kind: 'join' }>[] {
  if (item === null) return [];
  return item.kind === 'join' ? [...leavesOf(item.left), ...leavesOf(item.right)] : [item];
}

/** Calls `f` for each value at any depth of `expr`, itself first; queries inside it are not entered. */
export function visitExpr(expr: Expr, f: (e: Expr) => void): void {
  f(expr);
  for (const child of childrenOf(expr)) visitExpr(child, f);
}

export function someExpr(expr: Expr, f: (e: Expr) => boolean): boolean {
  return f(expr) || childrenOf(expr).some((c) => someExpr(c, f));
}

/** The queries directly below `query`: common tables, derived tables, operands and those inside values. */
export function subqueriesOf(query: Query): readonly Query[] {
  const inExprs = (exprs: readonly Expr[]): readonly Query[] =>
    exprs.flatMap((e) => {
      const found: Query[] = [];
      visitExpr(e, (x) => {
        const inner = queryOf(x);
        if (inner !== null) found.push(inner);
      });
      return found;
    });
  switch (query.kind) {
    case 'values':
      return inExprs(query.rows.flat());
    case 'set_operation':
      return [...query.with.map((t) => t.query), query.left, query.right, ...inExprs(exprsOf(query))];
    case 'select':
      return [
        ...query.with.map((t) => t.query),
        ...leavesOf(query.from).flatMap((i) => (i.kind === 'derived' ? [i.query] : [])),
        ...inExprs(exprsOf(query)),
      ];
    default:
      return assertNever(query);
  }
}

/** The top values of one level, FROM conditions included. */
export function exprsOf(query: Query): readonly Expr[] {
  switch (query.kind) {
    case 'values':
      return query.rows.flat();
    case 'set_operation':
      return [...sortExprs(query.orderBy), ...optional(query.limit), ...optional(query.offset)];
    case 'select':
      return [
        ...conditionsOf(query.from),
        ...query.where,
        ...query.groupBy,
        ...query.having,
        ...query.outputs.map((o) => o.expr),
        ...query.distinctOn,
        ...sortExprs(query.orderBy),
        ...optional(query.limit),
        ...optional(query.offset),
      ];
    default:
      return assertNever(query);
  }
}

/** Every query of the tree, `query` itself first. */
export function allQueries(query: Query): readonly Query[] {
  return [query, ...subqueriesOf(query).flatMap(allQueries)];
}

export function conditionsOf(item: FromItem | null): readonly Expr[] {
  if (item === null || item.kind !== 'join') return [];
  return [...conditionsOf(item.left), ...conditionsOf(item.right), ...item.on];
}

export function columnsOf(query: Query): readonly { readonly name: string; readonly type: Expr['type'] }[] {
  return query.kind === 'select'
    ? query.outputs.map((o) => ({ name: o.name, type: o.expr.type }))
    : query.columns;
}

function optional(expr: Expr | null): readonly Expr[] {
  return expr === null ? [] : [expr];
}

function sortExprs(keys: readonly SortKey[]): readonly Expr[] {
  return keys.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by]));
}

function boundExprs(bound: FrameBound): readonly Expr[] {
  return bound.kind === 'preceding' || bound.kind === 'following' ? [bound.offset] : [];
}

function mapBound(bound: FrameBound, f: (e: Expr) => Expr): FrameBound {
  return bound.kind === 'preceding' || bound.kind === 'following'
    ? Object.freeze({ kind: bound.kind, offset: f(bound.offset) })
    : bound;
}
