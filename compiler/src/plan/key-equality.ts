import type { ColumnRef, DistinctTest, Expr, Operation } from './plan.js';

/** Equates columns of two FROM items; NULL equals nothing. */
export type KeyEquality = Operation & { readonly left: ColumnRef; readonly right: ColumnRef };

/** Equates columns of two FROM items; NULL equals NULL. */
export type NullSafeEquality = DistinctTest & { readonly left: ColumnRef; readonly right: ColumnRef };

/** Whether `expr` equates columns of two FROM items with `=`. */
export function isKeyEquality(expr: Expr): expr is KeyEquality {
  if (expr.kind !== 'operation' || expr.definition.name !== '=') return false;
  const { left, right } = expr;
  return left?.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** Whether `expr` equates columns of two FROM items with IS NOT DISTINCT FROM. */
function isNullSafeEquality(expr: Expr): expr is NullSafeEquality {
  if (expr.kind !== 'distinct_test' || !expr.negated) return false;
  const { left, right } = expr;
  return left.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** Whether `expr` equates columns of two FROM items, either way. */
export function equatesColumns(expr: Expr): expr is KeyEquality | NullSafeEquality {
  return isKeyEquality(expr) || isNullSafeEquality(expr);
}
