import type { Node, SelectStmt } from '@pgsql/types';
import type { CheckedDatabase } from '../checked-database.js';
import { firstTarget } from '../nodes.js';
import { calledQuery } from './functions.js';
import { at, NotUnderstood, type PlacedExpression, referenceOf } from './scope.js';

/** A subquery in a condition. */
export interface Subquery {
  readonly select: SelectStmt;
  /** Where it stands: its tables and arguments, and the rights under which it runs. */
  readonly place: PlacedExpression;
  /** Only its first row counts, as of a function; otherwise several rows where one is expected are an error. */
  readonly firstRow: boolean;
  /** A value that its select list must be equal to; null if there need only be a row. */
  readonly equalTo: PlacedExpression | null;
  /** The value of its select list must be true. */
  readonly isTrue: boolean;
}

/** The subquery that an operand is, through casts, arguments and functions; null for any other operand. */
export function subqueryOf(place: PlacedExpression, database: CheckedDatabase): Subquery | null {
  const { node } = place;
  if ('TypeCast' in node && node.TypeCast.arg !== undefined)
    return subqueryOf(at(place, node.TypeCast.arg), database);
  const reference = referenceOf(place);
  if (reference !== null) return 'node' in reference ? subqueryOf(reference, database) : null;
  if ('FuncCall' in node) {
    const called = calledQuery(place, database);
    if (called === null) return null;
    const select = selectOf(called.query.node);
    const alone = aloneIn(select);
    if (alone !== null) return called.returnsSet ? null : subqueryOf(at(called.query, alone), database);
    if (called.strict && called.args.length > 0) throw new NotUnderstood('a STRICT function that reads rows');
    const firstRow = !called.returnsSet;
    return { select, place: called.query, firstRow, equalTo: null, isTrue: false };
  }
  if (!('SubLink' in node)) return null;
  const { subLinkType, subselect } = node.SubLink;
  if (subLinkType !== 'EXPR_SUBLINK' && subLinkType !== 'ARRAY_SUBLINK') return null;
  const select = selectOf(subselect);
  const alone = aloneIn(select);
  if (alone !== null) return subLinkType === 'EXPR_SUBLINK' ? subqueryOf(at(place, alone), database) : null;
  return { select, place, firstRow: false, equalTo: null, isTrue: false };
}

/** @throws NotUnderstood if it is another statement */
export function selectOf(query: Node | undefined): SelectStmt {
  if (query === undefined || !('SelectStmt' in query))
    throw new NotUnderstood('a subquery that is no SELECT');
  return query.SelectStmt;
}

/** The value of a query that is a single expression, such as `(SELECT auth.uid())`; null for any other query. */
export function aloneIn(select: SelectStmt): Node | null {
  const { fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, op, valuesLists } =
    select;
  const parts = [fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, valuesLists];
  const isPlain = parts.every((part) => part === undefined) && (op === undefined || op === 'SETOP_NONE');
  return isPlain && select.withClause === undefined && select.targetList?.length === 1
    ? firstTarget(select)
    : null;
}
