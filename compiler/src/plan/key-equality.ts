import { storedType } from '../types/column-form.js';
import type { BaseColumn, ColumnRef, DistinctTest, Expr, Operation, Parameter } from './plan.js';

/** Equates columns of two FROM items; NULL equals nothing. */
export type KeyEquality = Operation & { readonly left: ColumnRef; readonly right: ColumnRef };

/** Equates columns of two FROM items; NULL equals NULL. */
export type NullSafeEquality = DistinctTest & { readonly left: ColumnRef; readonly right: ColumnRef };

/** True if `expr` equates columns of two FROM items with `=`. */
export function isKeyEquality(expr: Expr): expr is KeyEquality {
  if (expr.kind !== 'operation' || expr.definition.name !== '=') return false;
  const { left, right } = expr;
  return left?.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** True if `expr` equates columns of two FROM items with IS NOT DISTINCT FROM. */
function isNullSafeEquality(expr: Expr): expr is NullSafeEquality {
  if (expr.kind !== 'distinct_test' || !expr.negated) return false;
  const { left, right } = expr;
  return left.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** True if `expr` equates columns of two FROM items, with `=` or with IS NOT DISTINCT FROM. */
export function equatesColumns(expr: Expr): expr is KeyEquality | NullSafeEquality {
  return isKeyEquality(expr) || isNullSafeEquality(expr);
}

/** An equality between a column stored as an enum and a value of the statement. */
export interface EnumEquality {
  readonly base: BaseColumn;
  /** The name of the enum in SQL. */
  readonly sql: string;
  readonly value: Parameter;
}

/** Returns the enum comparison in `operation`; null for any other operation. */
export function enumEquality({ left, definition, right }: Operation): EnumEquality | null {
  if (definition.name !== '=' || left === null) return null;
  return sides(left, right) ?? sides(right, left);
}

function sides(base: Expr, value: Expr): EnumEquality | null {
  if (base.kind !== 'base' || base.stored === undefined || value.kind !== 'parameter') return null;
  if (value.type !== 'text') return null;
  const type = storedType(base.stored);
  return type?.isEnum === true ? { base, sql: type.sql, value } : null;
}
