import { fingerprint } from '../fingerprint.js';
import type { Expr } from '../plan.js';
import { allQueries, childrenOf, exprsOf, queryOf } from '../walk.js';
import type { BindContext } from './context.js';
import { localSources, type Scope } from './scope.js';

/** Above GROUP BY, a column of this level may stand only inside an aggregate or as part of a grouped expression. */
export function checkGrouping(
  exprs: readonly Expr[],
  groupBy: readonly Expr[],
  scope: Scope,
  ctx: BindContext,
): void {
  const keys = new Set(groupBy.map(fingerprint));
  // Only a value as large as a key can be one: what a value is in words is written for those alone.
  const sizes = new Map<Expr, number>();
  const keySizes = new Set(groupBy.map((key) => sizeOf(key, sizes)));
  const isKey = (expr: Expr): boolean => keySizes.has(sizeOf(expr, sizes)) && keys.has(fingerprint(expr));
  const local = localSources(scope);
  const check = (expr: Expr): void => {
    if (expr.kind === 'aggregate' || isKey(expr)) return;
    if (expr.kind === 'column') {
      const item = local.get(expr.source);
      if (item === undefined) return;
      const shown = [...item.columns.entries()].find(([, c]) => c.name === expr.name)?.[0] ?? expr.name;
      const detail = `column \`${item.alias}.${shown}\` must stand in GROUP BY or inside an aggregate`;
      throw ctx.error('grouping', { detail }, ctx.locationOf(expr));
    }
    for (const child of childrenOf(expr)) check(child);
    const inner = queryOf(expr);
    if (inner !== null) allQueries(inner).flatMap(exprsOf).forEach(check);
  };
  for (const expr of exprs) check(expr);
}

/** Values that `expr` consists of, queries in it not entered. */
function sizeOf(expr: Expr, known: Map<Expr, number>): number {
  const before = known.get(expr);
  if (before !== undefined) return before;
  let size = 1;
  for (const child of childrenOf(expr)) size += sizeOf(child, known);
  known.set(expr, size);
  return size;
}
