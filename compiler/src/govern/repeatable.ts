import type { Expr, Query, Slot } from '../plan/plan.js';
import { allQueries, exprsOf, exprsOfScan, leavesOf, someExpr } from '../plan/walk.js';
import { elementOf, isArray, type TypeName } from '../types/types.js';
import type { GovernedPlan } from './governed-plan.js';

/**
 * True if the result of a plan depends only on its values, its session's settings and the stored rows. It may then be
 * cached for the same plan and rows, except for row order that the query leaves open. False for anything that reads a
 * clock, draws random numbers, or is computed by steps that run before the statement. The values themselves are checked
 * by `isTimelessValue`.
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

/** Functions that are stable because of session settings, which the cache key includes, and read no clock. */
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
      // A text that is cast to a time may be `now` or `today`.
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
