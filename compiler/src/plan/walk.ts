import { assertNever } from '../errors/errors.js';
import type {
  Expr,
  FrameBound,
  FromItem,
  FromLeaf,
  GovernedScan,
  Query,
  RowSource,
  SortKey,
  WindowCall,
} from './plan.js';

const NOTHING: readonly never[] = Object.freeze([]);

/** Returns the expressions directly below `expr`, in order, without queries (`queryOf`). */
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
      return NOTHING;
    case 'distance':
      return [expr.to];
    case 'call':
    case 'and':
    case 'or':
    case 'conditional':
    case 'grouping':
      return expr.args;
    case 'operation':
      return expr.left === null ? [expr.right] : [expr.left, expr.right];
    case 'cast':
    case 'bit_number':
    case 'collate':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'in_query':
    case 'attribute_match':
      return [expr.arg];
    case 'distinct_test':
      return [expr.left, expr.right];
    case 'row_comparison':
      return expr.pairs.flatMap((p) => [p.left, p.right]);
    case 'quantified':
      return [expr.arg, expr.array];
    case 'membership':
      return [expr.arg, ...expr.items];
    case 'case':
      return [...expr.arms.flatMap((a) => [a.when, a.result]), expr.otherwise];
    case 'array':
    case 'row_text':
      return expr.items;
    case 'subscript':
      return [expr.arg, ...expr.indices];
    case 'slice':
      return [expr.arg, ...optional(expr.lower), ...optional(expr.upper)];
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

/** Returns the query directly below `expr`; null if there is none. */
export function queryOf(expr: Expr): Query | null {
  return nests(expr) ? expr.query : null;
}

function nests(expr: Expr): expr is QueryExpr {
  return expr.kind === 'scalar_query' || expr.kind === 'exists' || expr.kind === 'in_query';
}

/** Returns `node` with `fields` replaced; `node` itself if nothing differs, to avoid needless copies. */
export function changed<N extends object>(node: N, fields: { readonly [K in keyof N]?: N[K] }): N {
  for (const key in fields) {
    if (fields[key] !== node[key]) return Object.freeze({ ...node, ...fields });
  }
  return node;
}

/** Returns `list` with `f` applied to each item; `list` itself if that changes nothing. */
export function mapped<T>(list: readonly T[], f: (item: T) => T): readonly T[] {
  let copy: T[] | null = null;
  let passed = 0;
  for (const item of list) {
    const after = f(item);
    if (copy === null && after !== item) copy = list.slice(0, passed);
    copy?.push(after);
    passed++;
  }
  return copy === null ? list : Object.freeze(copy);
}

/** Returns `expr` with `f` applied to its children and `q` to its query; `expr` itself if neither changes anything. */
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
    case 'grouping':
      return changed(expr, { args: mapped(expr.args, f) });
    case 'operation':
      return changed(expr, { left: maybe(expr.left), right: f(expr.right) });
    case 'cast':
    case 'bit_number':
    case 'collate':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'attribute_match':
      return changed(expr, { arg: f(expr.arg) });
    case 'distinct_test':
      return changed(expr, { left: f(expr.left), right: f(expr.right) });
    case 'row_comparison':
      return changed(expr, {
        pairs: mapped(expr.pairs, (p) => changed(p, { left: f(p.left), right: f(p.right) })),
      });
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
    case 'row_text':
      return changed(expr, { items: mapped(expr.items, f) });
    case 'subscript':
      return changed(expr, { arg: f(expr.arg), indices: mapped(expr.indices, f) });
    case 'slice':
      return changed(expr, { arg: f(expr.arg), lower: maybe(expr.lower), upper: maybe(expr.upper) });
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

/** Returns all FROM leaves of `item`, left to right. */
export function leavesOf(item: FromItem | null): readonly FromLeaf[] {
  if (item === null) return NOTHING;
  if (item.kind !== 'join') return [item];
  const leaves: FromLeaf[] = [];
  collectLeaves(item, leaves);
  return leaves;
}

function collectLeaves(item: FromItem, into: FromLeaf[]): void {
  if (item.kind === 'join') {
    collectLeaves(item.left, into);
    collectLeaves(item.right, into);
  } else into.push(item);
}

/** Calls `f` for `expr` and each expression in it at any depth, without those in queries. */
export function visitExpr(expr: Expr, f: (e: Expr) => void): void {
  f(expr);
  for (const child of childrenOf(expr)) visitExpr(child, f);
}

/** Returns the nodes of `kind` at any depth of `exprs`, without those in queries. */
export function nodesIn<K extends 'aggregate' | 'base' | 'column'>(
  exprs: readonly Expr[],
  kind: K,
): readonly Extract<Expr, { readonly kind: K }>[] {
  const found: Extract<Expr, { readonly kind: K }>[] = [];
  const isOfKind = (e: Expr): e is Extract<Expr, { readonly kind: K }> => e.kind === kind;
  const note = (e: Expr): void => {
    if (isOfKind(e)) found.push(e);
  };
  for (const expr of exprs) visitExpr(expr, note);
  return found;
}

/** Returns the queries directly inside `exprs`, at any depth of the expressions. */
export function queriesIn(exprs: readonly Expr[]): readonly Query[] {
  const found: Query[] = [];
  for (const expr of exprs)
    visitExpr(expr, (e) => {
      if (nests(e)) found.push(e.query);
    });
  return found;
}

export function someExpr(expr: Expr, f: (e: Expr) => boolean): boolean {
  return f(expr) || childrenOf(expr).some((c) => someExpr(c, f));
}

/** Returns all queries in the tree, `query` itself first. */
export function allQueries(query: Query): readonly Query[] {
  const all: Query[] = [];
  collectQueries(query, all);
  return all;
}

/** Returns all FROM leaves of a statement, at any depth. */
export function allLeaves(root: Query): readonly FromLeaf[] {
  return allQueries(root).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
}

/** Returns the expressions of a scan: its columns, its filter, and the predicates applied with the filter. */
export function exprsOfScan({ columns, filter, pushed }: GovernedScan): readonly Expr[] {
  return [...columns.map((c) => c.expr), ...optional(filter), ...pushed];
}

function collectQueries(query: Query, into: Query[]): void {
  into.push(query);
  for (const part of partsOf(query)) collectQueries(part, into);
  for (const nesting of nestingIn(query)) collectQueries(nesting.query, into);
}

/** Returns the queries that `query` reads from (in WITH, operands, derived tables, spines), not of expressions. */
export function partsOf(query: Query): readonly Query[] {
  if (query.kind === 'values') return NOTHING;
  const parts: Query[] = [];
  for (const t of query.with) parts.push(t.query);
  if (query.kind === 'set_operation') parts.push(query.left, query.right);
  else
    for (const leaf of leavesOf(query.from)) {
      if (leaf.kind === 'derived') parts.push(leaf.query);
      else if (leaf.kind === 'spine') parts.push(leaf.bounds);
    }
  return parts;
}

/** An expression that directly contains a query. */
export type QueryExpr = Extract<Expr, { readonly query: Query }>;

/** Cached by query. Entries must not refer to their query, or V8 would keep them until a full garbage collection. */
const NESTING = new WeakMap<Query, readonly QueryExpr[]>();

/** Returns the expressions of `query`, at any depth but not in nested queries, that contain a query. */
export function nestingIn(query: Query): readonly QueryExpr[] {
  const known = NESTING.get(query);
  if (known !== undefined) return known;
  const found: QueryExpr[] = [];
  const note = (e: Expr): void => {
    if (nests(e)) found.push(e);
  };
  for (const expr of exprsOf(query)) visitExpr(expr, note);
  const nesting = found.length === 0 ? NOTHING : found;
  NESTING.set(query, nesting);
  return nesting;
}

/** Returns the top-level expressions of one query, including conditions in FROM. */
export function exprsOf(query: Query): readonly Expr[] {
  switch (query.kind) {
    case 'values':
      return query.rows.flat();
    case 'set_operation':
      return [...sortExprs(query.orderBy), ...optional(query.limit), ...optional(query.offset)];
    case 'select':
      return [
        ...conditionsOf(query.from),
        ...leavesOf(query.from).flatMap((l) => (l.kind === 'rows' ? argumentsOf(l) : [])),
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

export function conditionsOf(item: FromItem | null): readonly Expr[] {
  if (item === null || item.kind !== 'join') return NOTHING;
  const conditions: Expr[] = [];
  collectConditions(item, conditions);
  return conditions;
}

function collectConditions(item: FromItem, into: Expr[]): void {
  if (item.kind !== 'join') return;
  collectConditions(item.left, into);
  collectConditions(item.right, into);
  for (const condition of item.on) into.push(condition);
}

/** Returns the arguments of a row source's function, and the keys used to read its rows. */
function argumentsOf({ args, fields }: RowSource): readonly Expr[] {
  return fields === null ? args : [...args, ...fields];
}

export function columnsOf(query: Query): readonly { readonly name: string; readonly type: Expr['type'] }[] {
  return query.kind === 'select'
    ? query.outputs.map((o) => ({ name: o.name, type: o.expr.type }))
    : query.columns;
}

function optional(expr: Expr | null): readonly Expr[] {
  return expr === null ? NOTHING : [expr];
}

/** Returns the expressions that `keys` sort by, without output positions. */
export function sortExprs(keys: readonly SortKey[]): readonly Expr[] {
  const exprs: Expr[] = [];
  for (const { by } of keys) if (typeof by !== 'number') exprs.push(by);
  return exprs;
}

export function boundExprs(bound: FrameBound): readonly Expr[] {
  return bound.kind === 'preceding' || bound.kind === 'following' ? [bound.offset] : NOTHING;
}

function mapBound(bound: FrameBound, f: (e: Expr) => Expr): FrameBound {
  return bound.kind === 'preceding' || bound.kind === 'following'
    ? changed(bound, { offset: f(bound.offset) })
    : bound;
}
