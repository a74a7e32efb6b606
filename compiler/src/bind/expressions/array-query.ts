import type { SelectStmt, SubLink } from '@pgsql/types';
import { neededFunction } from '../../functions/index.js';
import { columnRef, inType, selectOf } from '../../plan/nodes.js';
import type { Aggregate, Derived, Expr } from '../../plan/plan.js';
import { arrayOf, isArray } from '../../types/types.js';
import { type Location, nameParts, required, rowItems } from '../ast.js';
import type { BindContext } from '../context.js';
import type { Environment } from '../environment.js';
import { type BoundQuery, bindQuery } from '../select/query.js';
import { arrayTypeOf, coerce, typeOfBound } from './coerce.js';
import { bindExpression } from './expression.js';
import { operatorFor } from './infix.js';

/** `ARRAY(SELECT …)`. */
export function bindArrayQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  return arrayOfRows(bindQuery(select, env.ctx, env.scope), node.location, env.ctx);
}

/** `left op ANY | ALL (SELECT …)` as the same with an array of what the query yields. */
export function bindQuantifiedQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { ctx } = env;
  const at = node.location;
  const operator = nameParts(node.operName).join('.');
  const all = node.subLinkType === 'ALL_SUBLINK';
  const test = required(node.testexpr);
  if (rowItems(test) !== null)
    throw ctx.unsupported('a row compared with a subquery', at, 'use IN or EXISTS');
  const inner = bindQuery(select, ctx, env.scope);
  const arg = bindExpression(test, env);
  const element = inner.columns[0]?.type ?? 'text';
  const found = operatorFor(operator, typeOfBound(arg), element, at, ctx);
  if (found.result !== 'bool')
    throw ctx.mismatch(`operator ${operator} does not yield bool, as ANY and ALL need it`, at);
  const [left = element, right = element] = found.argumentTypes;
  if (isArray(right)) throw ctx.unsupported('an array of arrays', at);
  return ctx.at(
    Object.freeze({
      kind: 'quantified',
      definition: found.definition,
      quantifier: all ? 'all' : 'any',
      arg: coerce(arg, left, ctx, at),
      array: inType(arrayOfRows(inner, at, ctx), arrayOf(right)),
      type: 'bool',
    }),
    at,
  );
}

/** The rows of a query of one column as an array, in the query's own order: an empty one of none. */
function arrayOfRows({ query, columns }: BoundQuery, at: Location, ctx: BindContext): Expr {
  const [only, ...more] = columns;
  if (only === undefined || more.length > 0)
    throw ctx.mismatch('a subquery used as a value must have one column', at);
  const type = arrayTypeOf(only.type, ctx, at);
  const from: Derived = Object.freeze({ kind: 'derived', id: ctx.nextSource(), query });
  const { definition } = neededFunction('array_agg', [only.type]);
  const collected: Aggregate = Object.freeze({
    kind: 'aggregate',
    definition,
    args: Object.freeze([columnRef(from.id, 'c1', only.type)]),
    distinct: false,
    filter: null,
    orderBy: Object.freeze([]),
    metric: null,
    type,
  });
  const outputs = Object.freeze([Object.freeze({ name: 'array', expr: collected })]);
  const rows: Expr = Object.freeze({
    kind: 'scalar_query',
    query: selectOf({ from, grouped: true, outputs }),
    type,
  });
  const none: Expr = Object.freeze({ kind: 'array', items: Object.freeze([]), type });
  const args = Object.freeze([rows, none]);
  return ctx.at(Object.freeze({ kind: 'conditional', form: 'coalesce', args, type }), at);
}
