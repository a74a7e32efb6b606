import type { LiteralSlots } from '../bind/index.js';
import { assertNever } from '../errors.js';
import type { EntityScan, Expr, GovernedScan, Query, SourceId } from '../plan.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  queryOf,
  someExpr,
  visitExpr,
} from '../walk.js';
import { cannotFail } from './constants.js';
import type { Lineage } from './lineage.js';

/** What the barrier judges by. */
export interface Barrier {
  readonly lineage: Lineage;
  readonly literals: LiteralSlots;
  /** Whether the caller sees the column through a mask that computes on its value and is not leakproof. */
  readonly maskTells: (scan: EntityScan | GovernedScan, name: string) => boolean;
}

/**
 * The scans that need a fence: some predicate of the query could tell, by an error or a side channel, what is in
 * a row before the row filter has hidden it, because row data reaches a function that is not leakproof.
 *
 * Only predicates matter. What is computed in a select list runs on rows that have passed the filter; but a
 * predicate over a derived column counts as one over the expression behind it, since the planner merges levels.
 */
export function scansToFence(root: Query, barrier: Barrier): ReadonlySet<SourceId> {
  const fenced = new Set<SourceId>();
  for (const predicate of predicatesOf(root)) {
    for (const source of leakedSources(predicate, barrier)) fenced.add(source);
  }
  return fenced;
}

/** Whether no row data reaches a function that is not leakproof, derived columns looked through. */
export function isLeakproof(predicate: Expr, barrier: Barrier): boolean {
  return leakedSources(predicate, barrier).size === 0;
}

/** Everything that the planner may turn into a condition on a scan. */
function predicatesOf(root: Query): readonly Expr[] {
  return allQueries(root).flatMap((q) =>
    q.kind === 'select' ? [...q.where, ...q.having, ...conditionsOf(q.from)] : [],
  );
}

function leakedSources(predicate: Expr, barrier: Barrier): ReadonlySet<SourceId> {
  const { lineage, maskTells } = barrier;
  const leaked = new Set<SourceId>();
  const leak = (e: Expr): void => {
    for (const { scan } of lineage.columnsUnder(e)) leaked.add(scan.id);
  };
  // Whether something is evaluated at all tells that a row, hidden or not, has come so far.
  const leakEvaluation = (): void => {
    leak(predicate);
    visitExpr(predicate, (e) => outerColumns(e).forEach(leak));
  };
  const visit = (e: Expr): void => {
    // What an aggregate or window call yields exists only after every filter.
    if (e.kind === 'aggregate' || e.kind === 'window') return;
    if (e.kind === 'column') {
      const scan = lineage.scanOf(e.source);
      if (scan === null) lineage.definitionsOf(e).forEach(visit);
      else if (maskTells(scan, e.name)) leaked.add(scan.id);
      return;
    }
    if (!isSafeNode(e)) {
      leak(e);
      if (e.kind === 'in_query') lineage.outputsOf(e.query).forEach(leak);
      if (lineage.columnsUnder(e).length === 0 && !cannotFail(e, barrier.literals)) leakEvaluation();
    }
    const inner = queryOf(e);
    if (inner !== null && (e.kind === 'scalar_query' || canFail(inner, barrier))) leakEvaluation();
    childrenOf(e).forEach(visit);
  };
  visit(predicate);
  return leaked;
}

/** Whether anything in `query`, at any depth, may fail or tell. */
function canFail(query: Query, { lineage, maskTells }: Barrier): boolean {
  const risky = (e: Expr): boolean => {
    const scan = e.kind === 'column' ? lineage.scanOf(e.source) : null;
    if (e.kind === 'operation' && COMPARISONS.has(e.definition.name)) return false;
    return !isSafeNode(e) || (e.kind === 'column' && scan !== null && maskTells(scan, e.name));
  };
  return allQueries(query).some((q) => exprsOf(q).some((e) => someExpr(e, risky)));
}

/** What they compare they may tell, but they do not fail. */
const COMPARISONS: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=']);

/** Whether the node itself, given row data, can neither fail nor tell. */
function isSafeNode(e: Expr): boolean {
  switch (e.kind) {
    case 'column':
    case 'base':
    case 'parameter':
    case 'literal':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'and':
    case 'or':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'case':
    case 'array':
    case 'exists':
    case 'distance':
    case 'stored_vector':
      return true;
    case 'call':
    case 'operation':
    case 'quantified':
      return e.definition.leakproof;
    case 'cast':
      return e.leakproof && e.modifiers.length === 0;
    case 'distinct_test':
    case 'membership':
    case 'in_query':
    case 'attribute_match':
      return e.equality.leakproof;
    case 'conditional':
      return e.form === 'coalesce';
    case 'subscript':
    case 'scalar_query':
    case 'aggregate':
    case 'window':
      return false;
    default:
      return assertNever(e);
  }
}

/** The columns that the query below `e` reads from around it. */
function outerColumns(e: Expr): readonly Expr[] {
  const query = queryOf(e);
  if (query === null) return [];
  const levels = allQueries(query);
  const own = new Set(levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])));
  const found: Expr[] = [];
  for (const expr of levels.flatMap(exprsOf)) {
    visitExpr(expr, (x) => {
      if (x.kind === 'column' && !own.has(x.source)) found.push(x);
    });
  }
  return found;
}
