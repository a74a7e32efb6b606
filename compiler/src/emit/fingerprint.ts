import type { Expr } from '../plan.js';

const known = new WeakMap<Expr, string>();

/** A text that is equal for two values exactly when they are the same expression. For comparing, not for running. */
export function fingerprint(expr: Expr): string {
  if (expr.kind === 'column') return `${expr.source}.${expr.name}`;
  const before = known.get(expr);
  if (before !== undefined) return before;
  const text = JSON.stringify(expr);
  known.set(expr, text);
  return text;
}
