import { storedType } from '../types/stored.js';
import type { BaseColumn, Expr, Operation, Parameter } from './plan.js';

/** A column that is stored as an enum, compared with a value of the statement. */
export interface EnumEquality {
  readonly base: BaseColumn;
  /** The enum, as SQL names it. */
  readonly sql: string;
  readonly value: Parameter;
}

/** What `operation` is of that kind, or null. */
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
