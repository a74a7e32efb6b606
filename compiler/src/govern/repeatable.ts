import type { Aggregate, Expr, Query, Slot } from '../plan/plan.js';
import { relationsRead } from '../plan/properties.js';
import { allQueries, columnsOf, exprsOf, exprsOfScan, leavesOf, someExpr } from '../plan/walk.js';
import { elementOf, isArray, type TypeName } from '../types/types.js';
import type { GovernedPlan } from './governed-plan.js';

/**
 * True if the result of a plan depends only on its parameter values, the session's settings and the stored rows. It may
 * then be cached for the same plan and rows, except for row order that the query leaves open. False for anything that
 * reads a clock, draws random numbers, or is computed by steps that run before the statement. The parameter values
 * themselves are checked by `isTimelessValue`.
 */
export function isRepeatable({ query, runtime }: Pick<GovernedPlan, 'query' | 'runtime'>): boolean {
  return runtime.length === 0 && allQueries(query).every(isLevelRepeatable);
}

function isLevelRepeatable(level: Query): boolean {
  const leaves = level.kind === 'select' ? leavesOf(level.from) : [];
  const read: Expr[] = [];
  for (const leaf of leaves) {
    if (leaf.kind === 'runtime') return false;
    if (leaf.kind === 'rows' && !isKnown(leaf.definition)) return false;
    if (leaf.kind !== 'governed') continue;
    if (leaf.sample !== undefined) return false;
    read.push(...exprsOfScan(leaf));
  }
  return ![...exprsOf(level), ...read].some((e) => someExpr(e, mayDiffer));
}

/** Functions that are STABLE only because of session settings, which the cache key includes. None reads the clock. */
const OF_SETTINGS: ReadonlySet<string> = new Set([
  ...['concat', 'concat_ws', 'format', 'array_to_string'],
  ...['date_trunc', 'extract', 'date_part', 'overlaps', 'make_timestamptz', 'date', 'generate_series'],
  ...['to_char', 'to_date', 'to_timestamp', 'to_number'],
  ...['to_json', 'to_jsonb', 'json_build_array', 'jsonb_build_array', 'json_build_object'],
  ...['jsonb_build_object', 'array_to_json', 'json_agg', 'jsonb_agg', 'json_object_agg'],
]);

function isKnown({ name, volatility }: { readonly name: string; readonly volatility: string }): boolean {
  return volatility === 'immutable' || (volatility === 'stable' && OF_SETTINGS.has(name));
}

function mayDiffer(e: Expr): boolean {
  // The UTC offset of a named time zone depends on the current date.
  if (scalarOf(e.type) === 'timetz') return true;
  switch (e.kind) {
    case 'call':
    case 'aggregate':
    case 'window':
      return !isKnown(e.definition);
    case 'cast':
      // A text that is cast to a date or time may be `now` or `today`.
      return isTimed(e.type) && !isTimed(e.arg.type);
    default:
      return false;
  }
}

const TIMED: ReadonlySet<string> = new Set([
  ...['date', 'time', 'timetz', 'timestamp', 'timestamptz'],
  ...['daterange', 'tsrange', 'tstzrange', 'datemultirange', 'tsmultirange', 'tstzmultirange'],
]);

function scalarOf(type: TypeName): TypeName {
  return isArray(type) ? elementOf(type) : type;
}

function isTimed(type: TypeName): boolean {
  return TIMED.has(scalarOf(type));
}

/**
 * True if `text` is a value of `slot` that means the same at any time, unlike `today`. Timestamps must be in digits.
 *
 * @param textOf gives the value in Postgres' text format; null for NULL, and for a value in binary format
 */
export function isTimelessValue({ type }: Pick<Slot, 'type'>, textOf: () => string | null): boolean {
  if (!isTimed(type)) return true;
  const text = textOf();
  return text === null || /^[\d\s:.,+\-TZ{}()[\]"]*$/.test(text);
}

/**
 * Returns the reason why two runs of a plan over the same rows may return different rows, or null if they cannot, apart
 * from the order of the rows. Stricter than `isRepeatable`, which accepts any answer that the query permits: after
 * hidden rows have changed, the database may read rows in another order, and so choose other rows among ties or add
 * floats to a different sum.
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

/** Types whose equal values have equal texts, unlike 1.0 and 1.00, or -0 and 0. */
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
