import { fingerprint } from '../emit/fingerprint.js';
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
  const local = localSources(scope);
  const check = (expr: Expr): void => {
    if (keys.has(fingerprint(expr)) || expr.kind === 'aggregate') return;
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
