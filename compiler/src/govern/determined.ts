import type { Aggregate, Expr, Query } from '../plan/plan.js';
import { relationsRead } from '../plan/properties.js';
import { allQueries, columnsOf, exprsOf, someExpr } from '../plan/walk.js';
import type { TypeName } from '../types/types.js';
import type { GovernedPlan } from './governed-plan.js';
import { isRepeatable } from './repeatable.js';

/**
 * The reason why two runs of a plan over the same rows may return different rows, or null if they cannot, apart from
 * the order of the rows. Stricter than `isRepeatable`, which accepts each answer that the query permits: of ties, and
 * of floats that are added up, the database may return another answer after hidden rows have changed, since it may
 * then read the rows in another order.
 */
export function indeterminacyOf({ query, runtime }: Pick<GovernedPlan, 'query' | 'runtime'>): string | null {
  if (runtime.length > 0) return 'it uses RETRIEVE, TRAVERSE, evidence or an operator';
  if (relationsRead(query).length === 0) return 'it reads no entity';
  if (!isRepeatable({ query, runtime })) return 'it depends on the clock or on chance';
  return firstOf(allQueries(query), (level) => faultOfLevel(level) ?? firstOf(exprsOf(level), faultOfExpr));
}

function firstOf<T>(items: readonly T[], faultOf: (item: T) => string | null): string | null {
  for (const item of items) {
    const fault = faultOf(item);
    if (fault !== null) return fault;
  }
  return null;
}

function faultOfLevel(level: Query): string | null {
  if (level.kind === 'values') return null;
  if (level.limit !== null || level.offset !== null) return 'LIMIT and OFFSET choose among ties';
  if (level.kind === 'set_operation') {
    const keepsAll = level.operator === 'union' && level.all;
    return keepsAll ? null : faultOfKeys(columnsOf(level).map((c) => c.type));
  }
  if (level.distinctOn.length > 0) return 'DISTINCT ON chooses among ties';
  const keys = level.distinct ? [...level.groupBy, ...level.outputs.map((o) => o.expr)] : level.groupBy;
  return faultOfKeys(keys.map((key) => key.type));
}

/** Types whose equal values are also written alike, unlike 1.0 and 1.00, or -0 and 0. */
const EXACT: ReadonlySet<TypeName> = new Set<TypeName>([
  ...(['bool', 'int2', 'int4', 'int8', 'text', 'uuid', 'bytea'] as const),
  ...(['date', 'time', 'timestamp', 'timestamptz'] as const),
]);

function faultOfKeys(types: readonly TypeName[]): string | null {
  const inexact = types.find((type) => !EXACT.has(type));
  return inexact === undefined ? null : `equal values of type ${inexact} may be written in several ways`;
}

function faultOfExpr(root: Expr): string | null {
  let fault: string | null = null;
  someExpr(root, (e) => {
    if (e.kind === 'window') fault ??= 'window functions depend on the order of ties';
    if (e.kind === 'aggregate') fault ??= faultOfAggregate(e);
    return fault !== null;
  });
  return fault;
}

const ADDED: ReadonlySet<TypeName> = new Set<TypeName>(['int2', 'int4', 'int8', 'numeric', 'money']);

function faultOfAggregate({ definition: { name }, args, distinct }: Aggregate): string | null {
  const types = args.map((arg) => arg.type);
  switch (name) {
    case 'count':
    case 'bool_and':
    case 'bool_or':
    case 'every':
      return null;
    case 'min':
    case 'max':
      return faultOfKeys(types);
    case 'sum':
    case 'avg':
      if (distinct) return faultOfKeys(types);
      return types.every((type) => ADDED.has(type)) ? null : `${name} of ${types.join()} is not exact`;
    default:
      return `${name} may depend on the order of the rows`;
  }
}
