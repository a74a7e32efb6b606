import { arrayOf, SCALAR_TYPES, type ScalarType, type TypeName } from '../types.js';
import { cast, LEAKPROOF } from './define.js';
import type { CastDefinition } from './definition.js';

/** The rows of `pg_cast` between the model's types. */
export const CATALOG_CASTS: readonly CastDefinition[] = Object.freeze([
  cast('bool', 'int4', 'explicit', LEAKPROOF),
  cast('bool', 'text', 'assignment'),
  cast('bool', 'bpchar', 'assignment'),
  cast('text', 'bpchar', 'implicit', LEAKPROOF),
  cast('bpchar', 'text', 'implicit'),
  cast('int2', 'int4', 'implicit', LEAKPROOF),
  cast('int2', 'int8', 'implicit', LEAKPROOF),
  cast('int2', 'float4', 'implicit', LEAKPROOF),
  cast('int2', 'float8', 'implicit', LEAKPROOF),
  cast('int2', 'numeric', 'implicit', LEAKPROOF),
  cast('int4', 'bool', 'explicit', LEAKPROOF),
  cast('int4', 'int2', 'assignment'),
  cast('int4', 'int8', 'implicit', LEAKPROOF),
  cast('int4', 'float4', 'implicit', LEAKPROOF),
  cast('int4', 'float8', 'implicit', LEAKPROOF),
  cast('int4', 'numeric', 'implicit', LEAKPROOF),
  cast('int8', 'int2', 'assignment'),
  cast('int8', 'int4', 'assignment'),
  cast('int8', 'float4', 'implicit', LEAKPROOF),
  cast('int8', 'float8', 'implicit', LEAKPROOF),
  cast('int8', 'numeric', 'implicit', LEAKPROOF),
  cast('float4', 'int2', 'assignment'),
  cast('float4', 'int4', 'assignment'),
  cast('float4', 'int8', 'assignment'),
  cast('float4', 'float8', 'implicit', LEAKPROOF),
  cast('float4', 'numeric', 'assignment', LEAKPROOF),
  cast('float8', 'int2', 'assignment'),
  cast('float8', 'int4', 'assignment'),
  cast('float8', 'int8', 'assignment'),
  cast('float8', 'float4', 'assignment'),
  cast('float8', 'numeric', 'assignment', LEAKPROOF),
  cast('numeric', 'int2', 'assignment'),
  cast('numeric', 'int4', 'assignment'),
  cast('numeric', 'int8', 'assignment'),
  cast('numeric', 'float4', 'implicit'),
  cast('numeric', 'float8', 'implicit'),
  cast('date', 'timestamp', 'implicit'),
  cast('date', 'timestamptz', 'implicit'),
  cast('time', 'interval', 'implicit', LEAKPROOF),
  cast('timestamp', 'date', 'assignment'),
  cast('timestamp', 'time', 'assignment'),
  cast('timestamp', 'timestamptz', 'implicit'),
  cast('timestamptz', 'date', 'assignment'),
  cast('timestamptz', 'time', 'assignment'),
  cast('timestamptz', 'timestamp', 'assignment'),
  cast('interval', 'time', 'assignment'),
  cast('jsonb', 'bool', 'explicit'),
  cast('jsonb', 'int2', 'explicit'),
  cast('jsonb', 'int4', 'explicit'),
  cast('jsonb', 'int8', 'explicit'),
  cast('jsonb', 'float4', 'explicit'),
  cast('jsonb', 'float8', 'explicit'),
  cast('jsonb', 'numeric', 'explicit'),
]);

type CastTable = Map<TypeName, Map<TypeName, CastDefinition>>;

function enter(table: CastTable, row: CastDefinition): void {
  const targets = table.get(row.from) ?? new Map<TypeName, CastDefinition>();
  if (!targets.has(row.to)) targets.set(row.to, row);
  table.set(row.from, targets);
}

/**
 * Every conversion, in the order in which Postgres looks for one: `pg_cast`; element by element between
 * arrays; through the text form (to text in assignments, from text only when asked).
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
    // No array cast is in the table yet, so both ends are scalar.
    const row = cast(arrayOf(from as ScalarType), arrayOf(to as ScalarType), context, { leakproof });
    enter(table, row);
  }
  for (const type of SCALAR_TYPES) textForm(arrayOf(type));
  return table;
}

const TABLE: ReadonlyMap<TypeName, ReadonlyMap<TypeName, CastDefinition>> = everyCast();

/**
 * How a value of type `from` becomes one of type `to`, or null where it cannot. A type's cast to itself is not
 * in the table.
 */
export function castBetween(from: TypeName, to: TypeName): CastDefinition | null {
  return TABLE.get(from)?.get(to) ?? null;
}

/** Whether Postgres converts `from` to `to` unasked; true of a type and itself. */
export function convertsImplicitly(from: TypeName, to: TypeName): boolean {
  return from === to || TABLE.get(from)?.get(to)?.context === 'implicit';
}
