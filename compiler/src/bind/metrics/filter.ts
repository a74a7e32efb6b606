import { allOf } from '../../plan/nodes.js';
import type { Aggregate, Expr } from '../../plan/plan.js';
import { mapChildren } from '../../plan/walk.js';

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
