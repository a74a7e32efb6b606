import { isArray, type TypeName } from '../types/types.js';
import { convertsImplicitly } from './casts.js';
import type { ArgumentType } from './definition.js';

/** A type as resolution sees it: null is an unknown-typed literal or an untyped parameter. */
export type Operand = TypeName | null;

/** `pg_type.typcategory`. */
export type Category = 'A' | 'B' | 'D' | 'I' | 'N' | 'P' | 'R' | 'S' | 'T' | 'U' | 'V';

const PREFERRED: ReadonlySet<ArgumentType> = new Set<ArgumentType>([
  'bool',
  'float8',
  'inet',
  'interval',
  'text',
  'timestamptz',
  'varbit',
]);

/** The category of `type`; pseudo-types have one of their own, so they never match an argument's. */
export function categoryOf(type: ArgumentType): Category {
  switch (type) {
    case 'bool':
      return 'B';
    case 'int2':
    case 'int4':
    case 'int8':
    case 'float4':
    case 'float8':
    case 'numeric':
    case 'money':
      return 'N';
    case 'inet':
    case 'cidr':
      return 'I';
    case 'text':
    case 'bpchar':
      return 'S';
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'timetz':
      return 'D';
    case 'interval':
      return 'T';
    case 'uuid':
    case 'bytea':
    case 'jsonb':
    case 'macaddr':
    case 'macaddr8':
    case 'tsvector':
    case 'tsquery':
    case 'json':
      return 'U';
    case 'varbit':
      return 'V';
    case 'int4range':
    case 'int8range':
    case 'numrange':
    case 'daterange':
    case 'tsrange':
    case 'tstzrange':
    case 'int4multirange':
    case 'int8multirange':
    case 'nummultirange':
    case 'datemultirange':
    case 'tsmultirange':
    case 'tstzmultirange':
      return 'R';
    case 'any':
    case 'anyelement':
    case 'anynonarray':
    case 'anyarray':
    case 'anyrange':
    case 'anymultirange':
    case 'anycompatible':
    case 'anycompatiblearray':
      return 'P';
    default:
      return isArray(type) ? 'A' : unreachable(type);
  }
}

/** Whether Postgres prefers `type` within its category. */
export function isPreferred(type: ArgumentType): boolean {
  return PREFERRED.has(type);
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

function unreachable(type: never): never {
  throw new TypeError(`no category for type ${String(type)}`);
}
