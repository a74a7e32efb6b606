import type { Expr, Query } from './plan.js';
import { allQueries, exprsOf, someExpr } from './walk.js';

/** Whether some value of a statement, at any depth, is another one each time that it is worked out. */
export function isVolatile(root: Query): boolean {
  return allQueries(root).some((query) => exprsOf(query).some(callsVolatile));
}

/** Whether a value, queries in it not entered, is another one each time. */
export function callsVolatile(expr: Expr): boolean {
  return someExpr(expr, (e) => e.kind === 'call' && e.definition.volatility === 'volatile');
}
