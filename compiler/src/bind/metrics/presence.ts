import { allOf, isNotNull } from '../../plan/nodes.js';
import type { Aggregate, Expr, FromItem, SourceId } from '../../plan/plan.js';
import { leavesOf, mapChildren } from '../../plan/walk.js';

/** Aggregates that pass over a NULL by themselves. */
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

/** `value`, in which no aggregate takes a row that an outer join has put NULLs in the place of. */
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
 * Condition that is true for the rows of `from` that have a row of `source`: the column that the outer join compared is
 * not NULL. Null if it compared another item's column.
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

/** `expr` with `filter` on every aggregate in it. */
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
