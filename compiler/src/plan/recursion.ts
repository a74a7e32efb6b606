import type { Expr, Query, RecursionRef } from './plan.js';
import { childrenOf, leavesOf, someExpr } from './walk.js';

/** The FROM item of a recursive table's second operand that reads the rows of the step before; null where none does. */
export function recursionIn(query: Query, table: number): RecursionRef | null {
  if (query.kind !== 'set_operation' || query.right.kind !== 'select') return null;
  const found = leavesOf(query.right.from).find((l) => l.kind === 'recursion' && l.table === table);
  return found?.kind === 'recursion' ? found : null;
}

/**
 * What the values of column `index` of the step before are made of, whichever step that is: nothing in it reads the step
 * before again.
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
  // A set hands out what is added to it while it is gone through.
  for (const column of open) {
    found.push(...outputsAt(query.left, column));
    outputsAt(query.right, column).forEach(collect);
  }
  return found;
}
