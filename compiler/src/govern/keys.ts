import type { Access } from '../access.js';
import { InternalError, queryError } from '../errors.js';
import type { ColumnRef, Expr, Query, SourceId } from '../plan.js';
import { allQueries, conditionsOf, leavesOf } from '../walk.js';
import type { Lineage } from './lineage.js';
import { columnRule, keyColumnName } from './mask.js';

/**
 * The sealed columns that the query joins on, by scan, where their mask must give way to NULL: a masked key
 * matches nothing. A `hash` mask may be joined as it is.
 *
 * @throws QueryError E0515 for a key that policy never shows in the clear; decided from the plan, never from data
 */
export function joinKeys(
  root: Query,
  lineage: Lineage,
  access: Access,
): ReadonlyMap<SourceId, ReadonlySet<string>> {
  const keys = new Map<SourceId, Set<string>>();
  for (const ref of joinedColumns(root)) {
    const scan = lineage.scanOf(ref.source);
    if (scan === null) {
      refuseMaskedDerived(ref, lineage, access);
      continue;
    }
    const relationAccess = access.relations.get(scan.relation.name);
    if (relationAccess === undefined)
      throw new InternalError(`relation ${scan.relation.name} is not in the access`);
    const rule = columnRule(scan.relation, ref.name, relationAccess);
    if (rule.masked === 'none') continue;
    if (rule.masked === 'all' && rule.mask !== 'hash') throw queryError('keyNotClear', { column: ref.name });
    const names = keys.get(ref.source) ?? new Set();
    names.add(ref.name);
    keys.set(ref.source, names);
  }
  return keys;
}

/** A key that comes through a derived table cannot give way to NULL any more, so it must be clear throughout. */
function refuseMaskedDerived(ref: ColumnRef, lineage: Lineage, access: Access): void {
  for (const { scan, name } of lineage.columnsUnder(ref)) {
    const relationAccess = access.relations.get(scan.relation.name);
    if (relationAccess === undefined)
      throw new InternalError(`relation ${scan.relation.name} is not in the access`);
    const rule = columnRule(scan.relation, name, relationAccess);
    if (rule.masked !== 'none' && !(rule.mask === 'hash' && rule.masked === 'all'))
      throw queryError('keyNotClear', { column: name });
  }
}

/** Columns on either side of a sealed equality: ON, the correlation of a subquery, IN over a subquery. */
function joinedColumns(root: Query): readonly ColumnRef[] {
  const found: ColumnRef[] = [];
  const add = (e: Expr | null): void => {
    if (e?.kind === 'column') found.push(e);
  };
  for (const query of allQueries(root)) {
    if (query.kind !== 'select') continue;
    for (const condition of conditionsOf(query.from)) {
      if (condition.kind === 'operation') [condition.left, condition.right].forEach(add);
    }
    for (const conjunct of query.where) {
      if (isCorrelation(conjunct, query)) [conjunct.left, conjunct.right].forEach(add);
    }
    for (const conjunct of [...query.where, ...query.having, ...query.outputs.map((o) => o.expr)])
      eachInQuery(conjunct, add);
  }
  return found;
}

function eachInQuery(expr: Expr, add: (e: Expr) => void): void {
  if (expr.kind === 'in_query') {
    add(expr.arg);
    const output = expr.query.kind === 'select' ? expr.query.outputs[0]?.expr : undefined;
    if (output !== undefined) add(output);
  }
  const below =
    expr.kind === 'and' || expr.kind === 'or' || expr.kind === 'call'
      ? expr.args
      : expr.kind === 'not'
        ? [expr.arg]
        : [];
  for (const child of below) eachInQuery(child, add);
}

/** Whether `expr` equates a column of `query` with one from around it. */
export function isCorrelation(expr: Expr, query: Query): expr is Extract<Expr, { kind: 'operation' }> {
  if (expr.kind !== 'operation' || expr.definition.name !== '=' || query.kind !== 'select') return false;
  const { left, right } = expr;
  if (left?.kind !== 'column' || right.kind !== 'column') return false;
  const own = new Set(leavesOf(query.from).map((i) => i.id));
  return own.has(left.source) !== own.has(right.source);
}

/** `expr` with the columns that it joins on replaced by their key variants. */
export function onKeys(expr: Expr, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Expr {
  if (expr.kind !== 'column' || keys.get(expr.source)?.has(expr.name) !== true) return expr;
  return Object.freeze({ ...expr, name: keyColumnName(expr.name) });
}
