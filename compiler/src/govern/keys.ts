import { columnOf, type Relation } from '../catalog.js';
import { type Position, type QueryError, queryError } from '../errors.js';
import type { ColumnRef, Expr, Form, FromItem, Operation, Query, Select, SourceId } from '../plan.js';
import { allQueries, conditionsOf, exprsOf, leavesOf, queryOf, visitExpr } from '../walk.js';
import type { ScanAccesses } from './groups.js';
import type { Lineage } from './lineage.js';
import { type ColumnRule, columnRule, keyColumnName } from './mask.js';

/** What a refusal of the question needs of it. */
interface Asked {
  readonly form: Form;
  /** Where an expression stands in the caller's text. */
  readonly positionOf: (expr: Expr) => Position | null;
}

/**
 * The sealed columns that the query joins on, by scan, where their mask must give way to NULL: a masked key
 * matches nothing. A `hash` mask may be joined as it is.
 *
 * @throws QueryError E0515 for a key that policy never shows in the clear; decided from the plan, never from data
 */
export function joinKeys(
  root: Query,
  lineage: Lineage,
  accesses: ScanAccesses,
  asked: Asked,
): ReadonlyMap<SourceId, ReadonlySet<string>> {
  const keys = new Map<SourceId, Set<string>>();
  const fixed = fixedKeys(root);
  for (const ref of joinedColumns(root)) {
    const scan = lineage.scanOf(ref.source);
    if (scan === null) {
      refuseMaskedDerived(ref, lineage, accesses, asked);
      continue;
    }
    const rule = columnRule(scan.relation, ref.name, accesses.of(scan).access);
    if (rule.masked === 'none' || isHashed(rule)) continue;
    if ((rule.masked === 'all' && rule.mask !== 'hash') || fixed.has(ref)) {
      throw keyNotClear(scan.relation, ref, ref.name, asked);
    }
    const names = keys.get(ref.source) ?? new Set();
    names.add(ref.name);
    keys.set(ref.source, names);
  }
  return keys;
}

/** A key that comes through a derived table cannot give way to NULL any more, so it must be clear throughout. */
function refuseMaskedDerived(ref: ColumnRef, lineage: Lineage, accesses: ScanAccesses, asked: Asked): void {
  for (const { scan, name } of lineage.columnsUnder(ref)) {
    const rule = columnRule(scan.relation, name, accesses.of(scan).access);
    if (rule.masked !== 'none' && !isHashed(rule)) throw keyNotClear(scan.relation, ref, name, asked);
  }
}

/** In raw SQL a column is called what the caller calls it. */
function keyNotClear(relation: Relation, ref: ColumnRef, name: string, asked: Asked): QueryError {
  const column = asked.form === 'sql' ? columnOf(relation, name)?.physical : name;
  return queryError('keyNotClear', { column: column ?? name }, asked.positionOf(ref));
}

/** Whether every cell is clear or a keyed hash, either of which can be joined as it is shown. */
function isHashed(rule: ColumnRule): boolean {
  return rule.mask === 'hash' && rule.covered === null;
}

/**
 * The keys that cannot give way to NULL, because something else at their level hangs on what is shown: the result
 * of an IN that groups or picks rows, and what a value above GROUP BY is joined on.
 */
function fixedKeys(root: Query): ReadonlySet<Expr> {
  const fixed = new Set<Expr>();
  for (const query of allQueries(root)) {
    for (const { query: inner, keys } of inQueriesOf(exprsOf(query))) {
      if (folds(inner)) for (const key of keys.slice(1)) fixed.add(key);
    }
    if (query.kind === 'select' && query.grouped) for (const key of keysAboveGroups(query)) fixed.add(key);
  }
  return fixed;
}

function keysAboveGroups(query: Select): readonly Expr[] {
  const own = new Set(leavesOf(query.from).map((l) => l.id));
  const sorted = query.orderBy.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by]));
  const above = [...query.outputs.map((o) => o.expr), ...query.having, ...sorted];
  const inside: Expr[] = [];
  for (const expr of above) {
    visitExpr(expr, (e) => {
      const inner = queryOf(e);
      if (inner !== null) inside.push(...inQueryKeys(e), ...joinedColumns(inner));
    });
  }
  return inside.filter((e) => e.kind === 'column' && own.has(e.source));
}

function inQueriesOf(exprs: readonly Expr[]): readonly { query: Query; keys: readonly Expr[] }[] {
  const found: { query: Query; keys: readonly Expr[] }[] = [];
  for (const expr of exprs) {
    visitExpr(expr, (e) => {
      if (e.kind === 'in_query') found.push({ query: e.query, keys: inQueryKeys(e) });
    });
  }
  return found;
}

/** Columns on either side of an equality of keys: ON, the correlation of a subquery, IN over a subquery. */
function joinedColumns(root: Query): readonly ColumnRef[] {
  const found: ColumnRef[] = [];
  const add = (e: Expr | null): void => {
    if (e?.kind === 'column') found.push(e);
  };
  for (const query of allQueries(root)) {
    if (query.kind !== 'select') continue;
    for (const condition of conditionsOf(query.from)) {
      if (isKeyEquality(condition)) [condition.left, condition.right].forEach(add);
    }
    for (const conjunct of query.where) {
      if (isKeyCondition(conjunct, query)) [conjunct.left, conjunct.right].forEach(add);
    }
    for (const expr of exprsOf(query)) visitExpr(expr, (e) => inQueryKeys(e).forEach(add));
  }
  return found;
}

/** The two keys of an IN over a subquery. */
function inQueryKeys(expr: Expr): readonly Expr[] {
  if (expr.kind !== 'in_query') return [];
  const output = expr.query.kind === 'select' ? expr.query.outputs[0]?.expr : undefined;
  return output === undefined ? [expr.arg] : [expr.arg, output];
}

/** Queries in which the key that they yield also decides which rows there are, so that it cannot be replaced. */
function folds(query: Query): boolean {
  return (
    query.kind !== 'select' ||
    query.grouped ||
    query.distinct ||
    query.distinctOn.length > 0 ||
    query.limit !== null ||
    query.offset !== null
  );
}

/** Whether `expr` equates columns of two FROM items. */
export function isKeyEquality(expr: Expr): expr is KeyEquality {
  if (expr.kind !== 'operation' || expr.definition.name !== '=') return false;
  const { left, right } = expr;
  return left?.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

type KeyEquality = Operation & { readonly left: ColumnRef; readonly right: ColumnRef };

/**
 * Whether `expr`, a conjunct of WHERE, joins: it equates a column of `query` with one from around it or, in raw SQL,
 * which may join there as well as in ON, with one of another FROM item.
 */
export function isKeyCondition(expr: Expr, query: Select): expr is KeyEquality {
  if (!isKeyEquality(expr)) return false;
  const own = new Set(leavesOf(query.from).map((i) => i.id));
  return own.has(expr.left.source) !== own.has(expr.right.source) || joinsFreely(query.from);
}

/** Whether raw SQL joins in `item`. */
export function joinsFreely(item: FromItem | null): boolean {
  return item?.kind === 'join' && (!item.sealed || joinsFreely(item.left) || joinsFreely(item.right));
}

/** `expr` with the columns that it joins on replaced by their key variants. */
export function onKeys(expr: Expr, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Expr {
  if (expr.kind !== 'column' || keys.get(expr.source)?.has(expr.name) !== true) return expr;
  return Object.freeze({ ...expr, name: keyColumnName(expr.name) });
}
