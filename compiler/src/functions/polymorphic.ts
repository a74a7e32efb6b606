import {
  arrayOf,
  elementOf,
  familyOfMultirange,
  familyOfRange,
  isArray,
  type RangeFamily,
  SCALAR_TYPES,
  type ScalarType,
  type TypeName,
  typeRow,
  type ValueCategory,
} from '../types/types.js';
import { convertsImplicitly } from './casts.js';
import type { ArgumentType, ResultType } from './define.js';

/** The type of an operand; null for a literal of unknown type or an untyped parameter. */
export type Operand = TypeName | null;

/** A type category, as in `pg_type.typcategory`. */
export type Category = ValueCategory | 'A' | 'P';

const SCALARS: ReadonlySet<string> = new Set(SCALAR_TYPES);

function isScalar(type: ArgumentType): type is ScalarType {
  return SCALARS.has(type);
}

/** Returns the category of `type`. All pseudo-types are in category P, which no operand has. */
export function categoryOf(type: ArgumentType): Category {
  if (isScalar(type)) return typeRow(type).category;
  return type.endsWith('[]') ? 'A' : 'P';
}

/** True if `type` is preferred within its category (`pg_type.typispreferred`). */
export function isPreferred(type: ArgumentType): boolean {
  return isScalar(type) && typeRow(type).isPreferred;
}

/** Returns the common type for CASE, COALESCE, UNION etc.; text if all are unknown, null if there is none. */
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

interface TypeBinding {
  readonly element: TypeName | null;
  readonly array: TypeName | null;
  readonly range: RangeFamily | null;
  readonly compatible: TypeName;
}

function arrayWith(element: TypeName | null): TypeName | null {
  return element === null || isArray(element) ? null : arrayOf(element);
}

/**
 * Resolves the polymorphic types in `declared` against a call's arguments; null if they conflict. Unknown arguments are
 * ignored.
 */
export function bindPolymorphic(
  declared: readonly ArgumentType[],
  actual: readonly Operand[],
): TypeBinding | null {
  let element: TypeName | null = null;
  let array: TypeName | null = null;
  let range: RangeFamily | null = null;
  let plainOnly = false;
  const compatible: TypeName[] = [];
  for (const [i, type] of declared.entries()) {
    if (type === 'anynonarray') plainOnly = true;
    const given = actual[i];
    if (given === null || given === undefined) continue;
    switch (type) {
      case 'anyelement':
      case 'anynonarray':
        if (element !== null && element !== given) return null;
        element = given;
        break;
      case 'anyarray':
        if (array !== null && array !== given) return null;
        array = given;
        break;
      case 'anyrange':
      case 'anymultirange': {
        const family: RangeFamily | null =
          type === 'anyrange' ? familyOfRange(given) : familyOfMultirange(given);
        if (family === null || (range !== null && range !== family)) return null;
        range = family;
        break;
      }
      case 'anycompatible':
        compatible.push(given);
        break;
      case 'anycompatiblearray':
        if (!isArray(given)) return null;
        compatible.push(elementOf(given));
        break;
      default: // concrete types and `any` are not bound
    }
  }
  if (array !== null) {
    if (!isArray(array)) return null;
    const member = elementOf(array);
    if (element !== null && element !== member) return null;
    element = member;
  }
  if (range !== null) {
    if (element !== null && element !== range.element) return null;
    element = range.element;
  }
  if (plainOnly && element !== null && isArray(element)) return null;
  const common = commonType(compatible);
  if (common === null) return null;
  return { element, array: array ?? arrayWith(element), range, compatible: common };
}

/** Resolves `declared` under `binding`; null if it is undetermined. */
export function concreteType(declared: ResultType, binding: TypeBinding): TypeName | null {
  switch (declared) {
    case 'anyelement':
    case 'anynonarray':
      return binding.element;
    case 'anyarray':
      return binding.array;
    case 'anyrange':
      return binding.range?.range ?? null;
    case 'anymultirange':
      return binding.range?.multirange ?? null;
    case 'anycompatible':
      return binding.compatible;
    case 'anycompatiblearray':
      return arrayWith(binding.compatible);
    default:
      return declared;
  }
}

export function isPolymorphic(type: ArgumentType): boolean {
  return (
    type === 'anyelement' ||
    type === 'anynonarray' ||
    type === 'anyarray' ||
    type === 'anyrange' ||
    type === 'anymultirange' ||
    type === 'anycompatible' ||
    type === 'anycompatiblearray'
  );
}
