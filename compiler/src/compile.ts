import type { Access } from './access.js';
import { bind, type Features } from './bind/index.js';
import type { Catalog } from './catalog.js';
import { queryError } from './errors.js';
import { type GovernedPlan, govern } from './govern/index.js';
import { parse } from './parse.js';
import { type TypeName, typeOfOid } from './types.js';

export interface CompileOptions {
  /** Types that the client declares for `$1 …`, by Postgres OID; 0 or an OID out of the model leaves it to us. */
  readonly parameterOids?: readonly number[];
  readonly features?: Features;
}

export const ALL_FEATURES: Features = Object.freeze({ scalarSubqueries: true, setOperations: true });

/**
 * OSL-SQL to a governed plan: parse, bind, govern. `emit` makes SQL of it.
 *
 * @throws QueryError for everything that the caller can mend
 */
export function compile(
  text: string,
  catalog: Catalog,
  access: Access,
  options: CompileOptions = {},
): GovernedPlan {
  try {
    const parsed = parse(text);
    const bound = bind(
      parsed,
      catalog,
      access,
      options.features ?? ALL_FEATURES,
      declared(options.parameterOids ?? []),
    );
    return govern(bound, access, catalog, (hop) => compile(hop, catalog, access));
  } catch (error) {
    throw error instanceof RangeError ? queryError('tooDeep', {}) : error;
  }
}

function declared(oids: readonly number[]): readonly (TypeName | null)[] {
  return oids.map((oid) => typeOfOid(oid));
}
