import { arrayOf, NUMBERS, RANGES, SCALAR_TYPES, type ScalarType, type TypeName } from '../types/types.js';
import { type CastDefinition, cast, LEAKPROOF, type Traits } from './define.js';

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
 * Returns all conversions in Postgres' order of preference: `pg_cast`; between arrays, element by element; via the
 * text form (to text in assignments, from text only explicitly).
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
