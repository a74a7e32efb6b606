import {
  arrayOf,
  elementOf,
  familyOfMultirange,
  familyOfRange,
  isArray,
  NUMBERS,
  RANGES,
  type RangeFamily,
  SCALAR_TYPES,
  type ScalarType,
  type TypeName,
  typeRow,
  type ValueCategory,
} from '../types/types.js';
import {
  type ArgumentType,
  type CastDefinition,
  cast,
  LEAKPROOF,
  type ResultType,
  type Traits,
} from './define.js';

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

function casts(
  from: TypeName,
  to: readonly TypeName[],
  context: CastDefinition['context'],
  traits?: Traits,
): readonly CastDefinition[] {
  return to.map((type) => cast(from, type, context, traits));
}

/** The rows of `pg_cast` between supported types. */
export const CATALOG_CASTS: readonly CastDefinition[] = Object.freeze([
  cast('bool', 'int4', 'explicit', LEAKPROOF),
  ...casts('bool', ['text', 'bpchar'], 'assignment'),
  cast('text', 'bpchar', 'implicit', LEAKPROOF),
  cast('bpchar', 'text', 'implicit'),
  ...casts('int2', ['int4', 'int8', 'float4', 'float8', 'numeric'], 'implicit', LEAKPROOF),
  cast('int4', 'bool', 'explicit', LEAKPROOF),
  cast('int4', 'int2', 'assignment'),
  ...casts('int4', ['int8', 'float4', 'float8', 'numeric'], 'implicit', LEAKPROOF),
  ...casts('int8', ['int2', 'int4'], 'assignment'),
  ...casts('int8', ['float4', 'float8', 'numeric'], 'implicit', LEAKPROOF),
  ...casts('float4', ['int2', 'int4', 'int8'], 'assignment'),
  cast('float4', 'float8', 'implicit', LEAKPROOF),
  cast('float4', 'numeric', 'assignment', LEAKPROOF),
  ...casts('float8', ['int2', 'int4', 'int8', 'float4'], 'assignment'),
  cast('float8', 'numeric', 'assignment', LEAKPROOF),
  ...casts('numeric', ['int2', 'int4', 'int8'], 'assignment'),
  ...casts('numeric', ['float4', 'float8'], 'implicit'),
  ...casts('date', ['timestamp', 'timestamptz'], 'implicit'),
  cast('time', 'interval', 'implicit', LEAKPROOF),
  ...casts('timestamp', ['date', 'time'], 'assignment'),
  cast('timestamp', 'timestamptz', 'implicit'),
  ...casts('timestamptz', ['date', 'time', 'timestamp'], 'assignment'),
  cast('interval', 'time', 'assignment'),
  ...casts('jsonb', ['bool', ...NUMBERS], 'explicit'),
  ...casts('inet', ['cidr', 'text', 'bpchar'], 'assignment'),
  cast('cidr', 'inet', 'implicit', LEAKPROOF),
  ...casts('cidr', ['text', 'bpchar'], 'assignment'),
  cast('macaddr', 'macaddr8', 'implicit', LEAKPROOF),
  cast('macaddr8', 'macaddr', 'implicit'),
  cast('int4', 'money', 'assignment'),
  cast('int8', 'money', 'assignment'),
  cast('numeric', 'money', 'assignment'),
  cast('money', 'numeric', 'assignment'),
  cast('time', 'timetz', 'implicit'),
  cast('timestamptz', 'timetz', 'assignment'),
  cast('timetz', 'time', 'assignment'),
  ...RANGES.map(({ range, multirange }) => cast(range, multirange, 'explicit')),
  cast('jsonb', 'json', 'assignment'),
  cast('json', 'jsonb', 'assignment'),
]);

type CastTable = Map<TypeName, Map<TypeName, CastDefinition>>;

function enter(table: CastTable, row: CastDefinition): void {
  const targets = table.get(row.from) ?? new Map<TypeName, CastDefinition>();
  if (!targets.has(row.to)) targets.set(row.to, row);
  table.set(row.from, targets);
}

/**
 * Returns all conversions. Those in `pg_cast` come first, then those between arrays, element by element, and then those
 * through the text form (to text in assignments, from text only explicitly).
 */
function everyCast(): CastTable {
  const table: CastTable = new Map();
  const textForm = (type: TypeName): void => {
    for (const string of ['text', 'bpchar'] as const) {
      if (type === string) continue;
      enter(table, cast(type, string, 'assignment'));
      enter(table, cast(string, type, 'explicit'));
    }
  };
  for (const row of CATALOG_CASTS) enter(table, row);
  for (const type of SCALAR_TYPES) if (type !== 'text') textForm(type);

  const scalarToScalar = [...table.values()].flatMap((targets) => [...targets.values()]);
  for (const { from, to, context, leakproof } of scalarToScalar) {
    // No array casts have been added yet, so both types are scalar.
    const row = cast(arrayOf(from as ScalarType), arrayOf(to as ScalarType), context, { leakproof });
    enter(table, row);
  }
  for (const type of SCALAR_TYPES) textForm(arrayOf(type));
  return table;
}

const TABLE: ReadonlyMap<TypeName, ReadonlyMap<TypeName, CastDefinition>> = everyCast();

/** Returns the cast from `from` to `to`; null if there is none. There are no casts from a type to itself. */
export function castBetween(from: TypeName, to: TypeName): CastDefinition | null {
  return TABLE.get(from)?.get(to) ?? null;
}

/** True if the types are equal or Postgres converts `from` to `to` implicitly. */
export function convertsImplicitly(from: TypeName, to: TypeName): boolean {
  return from === to || TABLE.get(from)?.get(to)?.context === 'implicit';
}
