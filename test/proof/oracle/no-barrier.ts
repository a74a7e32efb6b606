import { type Expr, type GovernedScan, type Query, walk } from './internals.js';

/** A statement as it would be without the barrier: no guard, no fence, nothing worked out by itself. */
export function withoutBarrier(root: Query): Query {
  return walk.mapQuery(root, {
    expr: (e) => unsealed(unasked(e)),
    item: (i) => (i.kind === 'governed' ? ({ ...i, fenced: false } satisfies GovernedScan) : i),
  });
}

/** A condition without the question whether its rows are shown. */
export function unasked(e: Expr): Expr {
  const [arm] = e.kind === 'case' ? e.arms : [];
  const asks =
    e.kind === 'case' && e.arms.length === 1 && e.otherwise.kind === 'boolean' && !e.otherwise.value;
  return asks && arm !== undefined && isQuestion(arm.when) ? arm.result : e;
}

function isQuestion(e: Expr): boolean {
  if (e.kind === 'and') return e.args.every(isQuestion);
  if (e.kind === 'truth_test') return e.test === 'false' && e.negated && isQuestion(e.arg);
  return e.kind === 'column' && e.type === 'bool' && /^(#shown|c\d+)$/.test(e.name);
}

/** IN over a query without the OFFSET that has it worked out by itself. */
function unsealed(e: Expr): Expr {
  if (e.kind !== 'in_query' || e.query.kind === 'values') return e;
  return { ...e, query: { ...e.query, offset: null } };
}
