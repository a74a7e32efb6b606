import { caseNode, castTo, nullOf } from '../../plan/nodes.js';
import type { Expr, FunctionCall, PlanOutput, Query } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { allQueries, exprsOf, exprsOfScan, leavesOf, someExpr } from '../../plan/walk.js';
import { stored } from './columns.js';

/**
 * Snapshot of a statement, as a `pg_snapshot`: statements with equal snapshots read the same rows of every table. NULL
 * on a standby, whose snapshots do not list the transactions still in progress.
 */
export const SNAPSHOT: PlanOutput = Object.freeze({
  name: stored('snapshot'),
  expr: Object.freeze({
    kind: 'scalar_query',
    // A separate query runs only once, whereas outputs are computed even for rows that LIMIT drops.
    query: selectOf({
      outputs: [
        {
          name: 'snapshot',
          expr: caseNode(
            ofServer('pg_is_in_recovery', 'bool'),
            nullOf('text'),
            castTo(ofServer('pg_current_snapshot', 'text'), 'text'),
          ),
        },
      ],
    }),
    type: 'text',
  }),
});

/** Creates a call of a function about the server itself, which callers may not call. */
function ofServer(name: string, type: FunctionCall['type']): FunctionCall {
  const args = Object.freeze([]);
  return Object.freeze({
    kind: 'call',
    definition: Object.freeze({
      name,
      kind: 'scalar',
      arguments: args,
      variadic: null,
      result: type,
      volatility: 'stable',
      leakproof: true,
      structural: new Map(),
    }),
    args,
    type,
  });
}

/**
 * True if `query`, which must not contain `SNAPSHOT`, has the same result for the same rows at any time. A stable
 * function may read the clock, and a text parsed as a time may be `now` or `today`.
 */
export function isTimeless(query: Query): boolean {
  return !allQueries(query).some((q) => {
    const scans = q.kind === 'select' ? leavesOf(q.from) : [];
    const read = scans.flatMap((s) => (s.kind === 'governed' ? exprsOfScan(s) : []));
    return [...exprsOf(q), ...read].some((e) => someExpr(e, mayReadClock));
  });
}

function mayReadClock(e: Expr): boolean {
  switch (e.kind) {
    case 'call':
    case 'aggregate':
      return e.definition.volatility !== 'immutable' || isTime(e);
    case 'cast':
    case 'parameter':
      return isTime(e);
    default:
      return false;
  }
}

function isTime({ type }: Expr): boolean {
  return /^(date|time)/.test(type);
}
