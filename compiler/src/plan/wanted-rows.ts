import type { Expr, Query, Select, SourceId } from './plan.js';
import { ORDINAL } from './runtime.js';
import { allQueries } from './walk.js';

/** LIMIT and OFFSET of a statement that takes the rows of a step as they come. */
export interface WantedRows {
  readonly limit: Expr;
  readonly offset: Expr | null;
}

/**
 * What bounds the rows of retrieval `source` that can stand in the answer: LIMIT and OFFSET where the SELECT that reads
 * it takes them best first and keeps each of them. Null where any of them may be wanted.
 */
export function wantedRows(query: Query, source: SourceId): WantedRows | null {
  const reads = (q: Query): q is Select =>
    q.kind === 'select' && q.from?.kind === 'runtime' && q.from.id === source;
  const select = allQueries(query).find(reads);
  if (select === undefined || select.limit === null || !keepsEach(select, source)) return null;
  return { limit: select.limit, offset: select.offset };
}

function keepsEach(select: Select, source: SourceId): boolean {
  const { where, grouped, distinct, distinctOn, withTies, orderBy } = select;
  const [first] = orderBy;
  if (first === undefined || typeof first.by === 'number' || first.by.kind !== 'column') return false;
  const inOrder = first.by.source === source && first.by.name === ORDINAL && !first.descending;
  return inOrder && where.length === 0 && !grouped && !distinct && distinctOn.length === 0 && !withTies;
}
