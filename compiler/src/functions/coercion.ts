import { SCALAR_TYPES, type ScalarType, type TypeName, typeRow, type ValueCategory } from '../types/types.js';
import { convertsImplicitly } from './casts.js';
import type { ArgumentType } from './definition.js';

/** A type as resolution sees it: null is an unknown-typed literal or an untyped parameter. */
export type Operand = TypeName | null;

/** `pg_type.typcategory`. */
export type Category = ValueCategory | 'A' | 'P';

const SCALARS: ReadonlySet<string> = new Set(SCALAR_TYPES);

function isScalar(type: ArgumentType): type is ScalarType {
  return SCALARS.has(type);
}

/** The category of `type`; pseudo-types have one of their own, so they never match an argument's. */
export function categoryOf(type: ArgumentType): Category {
  if (isScalar(type)) return typeRow(type).category;
  return type.endsWith('[]') ? 'A' : 'P';
}

/** True if Postgres prefers `type` within its category. */
export function isPreferred(type: ArgumentType): boolean {
  return isScalar(type) && typeRow(type).isPreferred;
}

/**
 * The type that all of `types` convert to, as CASE, COALESCE, UNION, ARRAY and `anycompatible` choose it; text
 * where all are unknown, null where there is none.
 */
export function commonType(types: readonly Operand[]): TypeName | null {
  let chosen: Operand = null;
  for (const type of types) {
    if (type === null || type === chosen) continue;
    if (chosen === null) {
      chosen = type;
    } else if (categoryOf(type) !== categoryOf(chosen)) {
      return null;
    } else if (
      !isPreferred(chosen) &&
      convertsImplicitly(chosen, type) &&
      !convertsImplicitly(type, chosen)
    ) {
      chosen = type;
    }
  }
  const common = chosen ?? 'text';
  return types.every((type) => type === null || convertsImplicitly(type, common)) ? common : null;
}
