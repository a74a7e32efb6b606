import { fingerprint } from '../../plan/fingerprint.js';
import type { Expr, Query } from '../../plan/plan.js';
import { childrenOf, exprsOf, partsOf, queryOf, readsAround, visitExpr } from '../../plan/walk.js';
import type { BindContext } from '../context.js';
import { localSources, type Scope } from '../scope.js';
import { keyFinder } from './group-keys.js';

/** Above GROUP BY, a column of this level may stand only inside an aggregate or as part of a grouped expression. */
export function checkGrouping(
  exprs: readonly Expr[],
  groupBy: readonly Expr[],
  scope: Scope,
  ctx: BindContext,
): void {
  const isKey = keyFinder(groupBy);
  const local = localSources(scope);
  const readsLocal = (query: Query): boolean =>
    [...readsAround(query)].some((s) => local.has(s) || scope.operators?.isResult(s) === true);
  const checkQuery = (query: Query): void => {
    if (!readsLocal(query)) return;
    exprsOf(query).forEach(check);
    partsOf(query).forEach(checkQuery);
  };
  const check = (expr: Expr): void => {
    if (expr.kind === 'aggregate' || expr.kind === 'grouping' || isKey(expr)) return;
    if (expr.kind === 'column') {
      if (scope.operators?.isResult(expr.source) === true) {
        const detail = 'an operator over rows must stand in GROUP BY or inside an aggregate';
        throw ctx.error('grouping', { detail }, ctx.locationOf(expr));
      }
      const item = local.get(expr.source);
      if (item === undefined) return;
      const shown = [...item.columns.entries()].find(([, c]) => c.name === expr.name)?.[0] ?? expr.name;
      const detail = `column \`${item.alias}.${shown}\` must stand in GROUP BY or inside an aggregate`;
      throw ctx.error('grouping', { detail }, ctx.locationOf(expr));
    }
    for (const child of childrenOf(expr)) check(child);
    const inner = queryOf(expr);
    if (inner !== null) checkQuery(inner);
  };
  for (const expr of exprs) check(expr);
}

/** `grouping(…)` takes keys of GROUP BY, and nothing else. */
export function refuseOtherGroupings(
  exprs: readonly Expr[],
  groupBy: readonly Expr[],
  ctx: BindContext,
): void {
  const keys = new Set(groupBy.map(fingerprint));
  const check = (e: Expr): void => {
    if (e.kind !== 'grouping') return;
    const other = e.args.find((a) => !keys.has(fingerprint(a)));
    if (other === undefined) return;
    const detail = 'the arguments of GROUPING must be keys of GROUP BY';
    throw ctx.error('grouping', { detail }, ctx.locationOf(e));
  };
  for (const expr of exprs) visitExpr(expr, check);
}
