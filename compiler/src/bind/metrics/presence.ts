import { allOf, isNotNull } from '../../plan/nodes.js';
import type { Aggregate, Expr, FromItem, SourceId } from '../../plan/plan.js';
import { leavesOf, mapChildren } from '../../plan/walk.js';

/** Aggregates that ignore NULLs. */
const SKIPPING: ReadonlySet<string> = new Set([
  'sum',
  'avg',
  'min',
  'max',
  'count',
  'stddev',
  'stddev_pop',
  'stddev_samp',
  'variance',
  'var_pop',
  'var_samp',
  'bool_and',
  'bool_or',
  'every',
]);

/** Excludes rows that an outer join filled with NULLs from all aggregates in `value`. */
export function overPresent(value: Expr, present: readonly Expr[]): Expr {
  const there = (e: Expr): Expr => {
    if (e.kind === 'aggregate') return skipsMissing(e) ? e : present.reduce(filterAggregates, e);
    return mapChildren(e, there, (q) => q);
  };
  return there(value);
}

function skipsMissing({ definition, args }: Aggregate): boolean {
  return SKIPPING.has(definition.name) && args[0]?.kind === 'column';
}

/**
 * Condition under which `from` has a row of `source`: the outer join's column is not NULL. Null if the join compares
 * another item's column.
 */
export function isPresent(from: FromItem, source: SourceId): Expr | null {
  if (from.kind !== 'join') return null;
  const inRight = leavesOf(from.right).some((l) => l.id === source);
  const optional = from.type === 'full' || (inRight && from.type === 'left');
  const below = isPresent(inRight ? from.right : from.left, source);
  if (below !== null || !optional || from.type === 'full') return below;
  for (const e of from.on) {
    if (e.kind !== 'operation' || e.definition.name !== '=') continue;
    for (const side of [e.left, e.right]) {
      if (side?.kind === 'column' && side.source === source) return isNotNull(side);
    }
  }
  return null;
}

export function filterAggregates(expr: Expr, filter: Expr): Expr {
  const below = mapChildren(
    expr,
    (e) => filterAggregates(e, filter),
    (q) => q,
  );
  if (below.kind !== 'aggregate') return below;
  const both = below.filter === null ? filter : allOf([below.filter, filter]);
  return Object.freeze({ ...below, filter: both } satisfies Aggregate);
}
