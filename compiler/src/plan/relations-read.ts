import type { Relation } from '../catalog/catalog.js';
import type { Expr, Query, RecursionRef } from './plan.js';
import { allQueries, childrenOf, exprsOf, leavesOf, someExpr } from './walk.js';

/** The relations that a governed query scans, without those of its runtime steps. */
export function relationsRead(query: Query): readonly Relation[] {
  const found = new Map<string, Relation>();
  for (const each of allQueries(query)) {
    if (each.kind !== 'select') continue;
    for (const leaf of leavesOf(each.from))
      if (leaf.kind === 'governed') found.set(leaf.relation.name, leaf.relation);
  }
  return [...found.values()];
}

/** The FROM item in a recursive table's second operand that reads the rows of the previous step; null if none does. */
export function recursionIn(query: Query, table: number): RecursionRef | null {
  if (query.kind !== 'set_operation' || query.right.kind !== 'select') return null;
  const found = leavesOf(query.right.from).find((l) => l.kind === 'recursion' && l.table === table);
  return found?.kind === 'recursion' ? found : null;
}

/**
 * The sources of column `index` of the previous step, for any step; none of them reads the previous step again.
 *
 * @param outputsAt the expressions that give an output of a query its values
 */
export function stepValues(
  query: Query,
  recursion: RecursionRef,
  index: number,
  outputsAt: (query: Query, index: number) => readonly Expr[],
): readonly Expr[] {
  if (query.kind !== 'set_operation') return [];
  const found: Expr[] = [];
  const open = new Set([index]);
  const readsStep = (e: Expr): boolean =>
    someExpr(e, (x) => x.kind === 'column' && x.source === recursion.id);
  const collect = (e: Expr): void => {
    if (!readsStep(e)) found.push(e);
    else if (e.kind === 'column') open.add(Number(e.name.slice(1)) - 1);
    else childrenOf(e).forEach(collect);
  };
  // A Set also iterates over elements that are added during the iteration.
  for (const column of open) {
    found.push(...outputsAt(query.left, column));
    outputsAt(query.right, column).forEach(collect);
  }
  return found;
}

/** True if some value of a statement, at any depth, may differ each time it is computed. */
export function isVolatile(root: Query): boolean {
  return allQueries(root).some((query) => exprsOf(query).some(callsVolatile));
}

/** True if a value, apart from queries in it, may differ each time it is computed. */
export function callsVolatile(expr: Expr): boolean {
  return someExpr(expr, (e) => e.kind === 'call' && e.definition.volatility === 'volatile');
}
