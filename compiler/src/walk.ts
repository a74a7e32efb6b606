import { assertNever } from './errors.js';
import type { CommonTable, Expr, FrameBound, FromItem, Query, SortKey, WindowCall } from './plan.js';

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

/** `node` with `fields` in place of its own; `node` itself where they are its own, so that nothing is copied in vain. */
export function changed<N extends object>(node: N, fields: { readonly [K in keyof N]?: N[K] }): N {
  for (const key in fields) {
    if (fields[key] !== node[key]) return Object.freeze({ ...node, ...fields });
  }
  return node;
}

/** `list` with `f` applied to each; `list` itself where that changes nothing. */
export function mapped<T>(list: readonly T[], f: (item: T) => T): readonly T[] {
  let copy: T[] | null = null;
  for (const [i, item] of list.entries()) {
    const after = f(item);
    if (copy === null && after !== item) copy = list.slice(0, i);
    copy?.push(after);
  }
  return copy === null ? list : Object.freeze(copy);
}

/**
 * `expr` with `f` applied to the values and `q` to the query directly below it; `expr` itself where neither changes
 * anything.
 */
export function mapChildren(expr: Expr, f: (e: Expr) => Expr, q: (query: Query) => Query): Expr {
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
      return changed(expr, { to: f(expr.to) });
    case 'call':
    case 'and':
    case 'or':
    case 'conditional':
      return changed(expr, { args: mapped(expr.args, f) });
    case 'operation':
      return changed(expr, { left: maybe(expr.left), right: f(expr.right) });
    case 'cast':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'attribute_match':
      return changed(expr, { arg: f(expr.arg) });
    case 'distinct_test':
      return changed(expr, { left: f(expr.left), right: f(expr.right) });
    case 'quantified':
      return changed(expr, { arg: f(expr.arg), array: f(expr.array) });
    case 'membership':
      return changed(expr, { arg: f(expr.arg), items: mapped(expr.items, f) });
    case 'case':
      return changed(expr, {
        arms: mapped(expr.arms, (a) => changed(a, { when: f(a.when), result: f(a.result) })),
        otherwise: f(expr.otherwise),
      });
    case 'array':
      return changed(expr, { items: mapped(expr.items, f) });
    case 'subscript':
      return changed(expr, { arg: f(expr.arg), index: f(expr.index) });
    case 'aggregate':
      return changed(expr, {
        args: mapped(expr.args, f),
        filter: maybe(expr.filter),
        orderBy: mapSort(expr.orderBy, f),
      });
    case 'window':
      return mapWindow(expr, f);
    case 'scalar_query':
    case 'exists':
      return changed(expr, { query: q(expr.query) });
    case 'in_query':
      return changed(expr, { arg: f(expr.arg), query: q(expr.query) });
    default:
      return assertNever(expr);
  }
}

function mapWindow(call: WindowCall, f: (e: Expr) => Expr): WindowCall {
  const { args, filter, partitionBy, orderBy, frame } = call;
  return changed(call, {
    args: mapped(args, f),
    filter: filter === null ? null : f(filter),
    partitionBy: mapped(partitionBy, f),
    orderBy: mapSort(orderBy, f),
    frame:
      frame === null
        ? null
        : changed(frame, { start: mapBound(frame.start, f), end: mapBound(frame.end, f) }),
  });
}

export function mapSort(keys: readonly SortKey[], f: (e: Expr) => Expr): readonly SortKey[] {
  return mapped(keys, (k) => (typeof k.by === 'number' ? k : changed(k, { by: f(k.by) })));
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

/** `query` with what `visit` makes of it, innermost first. Queries inside values are visited too. */
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
  // Values are gone through only where something in them can change.
  const values = visit.expr !== undefined || queriesInValues(query).length > 0;
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
      if (!item.sealed) return changed(item, { left, right, on: mapped(item.on, deep) });
      const on = mapped(item.on, (e) => deep(e) as typeof e); // a sealed equality maps to a sealed equality
      return changed(item, { left, right, on });
    }
    case 'derived':
      return leaf(changed(item, { query: q(item.query) }));
    case 'spine':
      return leaf(changed(item, { bounds: q(item.bounds) }));
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
function subqueriesOf(query: Query): readonly Query[] {
  switch (query.kind) {
    case 'values':
      return queriesInValues(query);
    case 'set_operation':
      return [...query.with.map((t) => t.query), query.left, query.right, ...queriesInValues(query)];
    case 'select':
      return [
        ...query.with.map((t) => t.query),
        ...leavesOf(query.from).flatMap((i) =>
          i.kind === 'derived' ? [i.query] : i.kind === 'spine' ? [i.bounds] : [],
        ),
        ...queriesInValues(query),
      ];
    default:
      return assertNever(query);
  }
}

// A query never changes, so what is in it is looked for once, however many passes ask.
const INSIDE = new WeakMap<Query, readonly Query[]>();
const BELOW = new WeakMap<Query, readonly Query[]>();

/** The queries directly below the values of one level. */
function queriesInValues(query: Query): readonly Query[] {
  const known = INSIDE.get(query);
  if (known !== undefined) return known;
  const found: Query[] = [];
  const note = (e: Expr): void => {
    const inner = queryOf(e);
    if (inner !== null) found.push(inner);
  };
  for (const expr of exprsOf(query)) visitExpr(expr, note);
  INSIDE.set(query, found);
  return found;
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
  const known = BELOW.get(query);
  if (known !== undefined) return known;
  const all = [query, ...subqueriesOf(query).flatMap(allQueries)];
  BELOW.set(query, all);
  return all;
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

/** What `keys` sort by, but for the places of outputs. */
export function sortExprs(keys: readonly SortKey[]): readonly Expr[] {
  return keys.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by]));
}

export function boundExprs(bound: FrameBound): readonly Expr[] {
  return bound.kind === 'preceding' || bound.kind === 'following' ? [bound.offset] : [];
}

function mapBound(bound: FrameBound, f: (e: Expr) => Expr): FrameBound {
  return bound.kind === 'preceding' || bound.kind === 'following'
    ? changed(bound, { offset: f(bound.offset) })
    : bound;
}
