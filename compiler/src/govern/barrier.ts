import { assertNever } from '../errors.js';
import type { Expr, Query, SourceId } from '../plan.js';
import { allQueries, childrenOf, conditionsOf } from '../walk.js';
import type { Lineage } from './lineage.js';

/**
 * The scans that need a fence: some predicate of the query could tell, by an error or a side channel, what is in
 * a row before the row filter has hidden it, because row data reaches a function that is not leakproof.
 *
 * Only predicates matter. What is computed in a select list runs on rows that have passed the filter; but a
 * predicate over a derived column counts as one over the expression behind it, since the planner merges levels.
 */
export function scansToFence(root: Query, lineage: Lineage): ReadonlySet<SourceId> {
  const fenced = new Set<SourceId>();
  for (const predicate of predicatesOf(root)) {
    for (const source of leakedSources(predicate, lineage)) fenced.add(source);
  }
  return fenced;
}

/** Whether no row data reaches a function that is not leakproof, derived columns looked through. */
export function isLeakproof(predicate: Expr, lineage: Lineage): boolean {
  return leakedSources(predicate, lineage).size === 0;
}

/** Everything that the planner may turn into a condition on a scan. */
function predicatesOf(root: Query): readonly Expr[] {
  return allQueries(root).flatMap((q) =>
    q.kind === 'select' ? [...q.where, ...q.having, ...conditionsOf(q.from)] : [],
  );
}

function leakedSources(expr: Expr, lineage: Lineage): ReadonlySet<SourceId> {
  const leaked = new Set<SourceId>();
  const visit = (e: Expr): void => {
    // What an aggregate or window call yields exists only after every filter.
    if (e.kind === 'aggregate' || e.kind === 'window') return;
    if (e.kind === 'column' && lineage.scanOf(e.source) === null) {
      for (const definition of lineage.definitionsOf(e)) visit(definition);
      return;
    }
    if (!isSafeNode(e)) {
      for (const { scan } of lineage.columnsUnder(e)) leaked.add(scan.id);
      if (e.kind === 'scalar_query') for (const source of outerSources(e.query)) leaked.add(source);
    }
    for (const child of childrenOf(e)) visit(child);
  };
  visit(expr);
  return leaked;
}

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

/** Sources that a correlated subquery reads from around it: all it names and does not have itself. */
function outerSources(query: Query): readonly SourceId[] {
  const named: SourceId[] = [];
  for (const predicate of predicatesOf(query)) {
    const visit = (e: Expr): void => {
      if (e.kind === 'column') named.push(e.source);
      for (const child of childrenOf(e)) visit(child);
    };
    visit(predicate);
  }
  return named;
}
