import type { Node, SelectStmt } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import { type DatabaseFunction, schemasFor, schemasOf } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { calledName, firstTarget } from '../nodes.js';
import { queryText } from '../statement.js';
import { at, NO_ARGUMENTS, NotUnderstood, type PlacedExpression, referenceOf } from './scope.js';

/** A call of a user-defined function, replaced by the query in its body. */
export interface CalledQuery {
  /** The SELECT in the body, with the arguments in its scope. */
  readonly query: PlacedExpression;
  readonly args: readonly PlacedExpression[];
  readonly returnsSet: boolean;
  /** True for STRICT: the result is NULL if an argument is NULL. */
  readonly strict: boolean;
}

/** Maximum nesting of function bodies. */
const MOST_DEPTH = 8;

/** The user-defined function that a node calls; null for functions of Postgres. @throws NotUnderstood */
export function calledQuery(place: PlacedExpression, database: CheckedDatabase): CalledQuery | null {
  if (!('FuncCall' in place.node)) return null;
  const called = functionOf(place, database);
  if (called === null) return null;
  const name = `${called.schema}.${called.name}`;
  const { rights } = place;
  if (rights.depth >= MOST_DEPTH) throw new NotUnderstood(`the function ${name}, which calls itself`);
  if (!database.access.mayExecute(rights.role, called))
    throw new NotUnderstood(`the function ${name}, which the role may not call`);
  const args = (place.node.FuncCall.args ?? []).map((node) => ({ ...place, node }));
  const names = new Map<string, PlacedExpression>();
  for (const [i, arg] of args.entries()) {
    names.set(`$${i + 1}`, arg);
    const own = called.argumentNames[i];
    if (own !== undefined && own !== '') names.set(own, arg);
  }
  const role = called.securityDefiner ? called.owner : rights.role;
  const path = called.searchPath === null ? rights.sessionPath : schemasOf(called.searchPath);
  return {
    query: {
      node: bodyOf(called, name),
      scope: { ranges: [], arguments: names.size === 0 ? NO_ARGUMENTS : names, outer: null },
      rights: {
        ...rights,
        role,
        searchPath: schemasFor(database.catalog.roles.get(role)?.name ?? '', path),
        sessionPath: path,
        depth: rights.depth + 1,
      },
    },
    args,
    returnsSet: called.returnsSet,
    strict: called.strict,
  };
}

function functionOf({ node, rights }: PlacedExpression, database: CheckedDatabase): DatabaseFunction | null {
  if (!('FuncCall' in node)) return null;
  const { schema, name } = calledName(node.FuncCall);
  const isQualified = (node.FuncCall.funcname ?? []).length > 1;
  if (schema === null && (isQualified || database.catalog.systemFunctions.has(name))) return null;
  const count = node.FuncCall.args?.length ?? 0;
  for (const one of schema === null ? rights.searchPath : [schema]) {
    const named = database.functionsNamed({ schema: one, name });
    const [called, another] = named.filter(({ arguments: types }) => countOf(types) === count);
    if (another !== undefined || (called === undefined && named.length > 0))
      throw new NotUnderstood(`the function ${one}.${name}, of which there are several`);
    if (called !== undefined) return called;
  }
  if (schema === null) return null;
  throw new NotUnderstood(`the function ${schema}.${name}`);
}

function countOf(types: string): number {
  return types === '' ? 0 : types.split(', ').length;
}

/** The only statement of a body, a SELECT. @throws NotUnderstood for any other body */
function bodyOf(called: DatabaseFunction, name: string): Node {
  const statement = queryText(called);
  try {
    const node = statement === null ? null : parse(statement.trim().replace(/;$/, '')).node;
    if (node !== null && 'SelectStmt' in node) return node;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
  }
  throw new NotUnderstood(`the body of the function ${name}`);
}

/** A subquery in a condition. */
export interface Subquery {
  readonly select: SelectStmt;
  /** The tables and arguments in its scope, and the rights under which it runs. */
  readonly place: PlacedExpression;
  /**
   * True if only the first row counts, as in an SQL function that does not return a set; otherwise, more than one row
   * may be an error.
   */
  readonly firstRow: boolean;
  /** A value that the selected value must equal; null if any row will do. */
  readonly equalTo: PlacedExpression | null;
  /** True if the selected value must be true. */
  readonly isTrue: boolean;
}

/** The subquery in an operand, also inside casts, arguments and functions; null for any other operand. */
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

/** The SELECT in a query. @throws NotUnderstood for any other statement */
export function selectOf(query: Node | undefined): SelectStmt {
  if (query === undefined || !('SelectStmt' in query))
    throw new NotUnderstood('a subquery that is no SELECT');
  return query.SelectStmt;
}

/** The only expression of a query without FROM, such as `(SELECT auth.uid())`; null for any other query. */
export function aloneIn(select: SelectStmt): Node | null {
  const { fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, op, valuesLists } =
    select;
  const parts = [fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, valuesLists];
  const isPlain = parts.every((part) => part === undefined) && (op === undefined || op === 'SETOP_NONE');
  return isPlain && select.withClause === undefined && select.targetList?.length === 1
    ? firstTarget(select)
    : null;
}
