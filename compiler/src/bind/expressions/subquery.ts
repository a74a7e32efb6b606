import type { Node, SelectStmt, SubLink } from '@pgsql/types';
import type { Expr } from '../../plan/plan.js';
import { nameParts, required, rowItems } from '../ast.js';
import type { Environment } from '../environment.js';
import { bindQuery } from '../select/query.js';
import { retypeOutputs } from '../select/set-operation.js';
import { bindArrayQuery, bindQuantifiedQuery } from './array-query.js';
import { coerce, typeOfBound } from './coerce.js';
import { bindExpression } from './expression.js';
import { operatorFor } from './infix.js';

/** A subquery inside a value: a scalar, a semi- or anti-join, or an array. */
export function bindSubLink(node: SubLink, env: Environment): Expr {
  const { ctx } = env;
  ctx.requireFeature('subqueries', node.location);
  const select = selectOf(node.subselect, env);
  switch (node.subLinkType) {
    case 'EXPR_SUBLINK':
      return bindScalarQuery(select, node, env);
    case 'EXISTS_SUBLINK':
      return bindExists(select, node, env);
    case 'ANY_SUBLINK':
      return isEquality(node, '=') ? bindInQuery(select, node, env) : bindQuantifiedQuery(select, node, env);
    case 'ALL_SUBLINK':
      return isEquality(node, '<>') ? notIn(select, node, env) : bindQuantifiedQuery(select, node, env);
    case 'ARRAY_SUBLINK':
      return bindArrayQuery(select, node, env);
    default:
      throw ctx.unsupported(
        SUBLINKS.get(node.subLinkType ?? '') ?? 'this kind of subquery',
        node.location,
        'use IN or EXISTS',
      );
  }
}

const SUBLINKS: ReadonlyMap<string, string> = new Map([
  ['ROWCOMPARE_SUBLINK', 'a row compared with a subquery'],
]);

/** Whether ANY or ALL is written with `operator`, which IN and NOT IN mean. */
function isEquality({ operName }: SubLink, operator: '=' | '<>'): boolean {
  const name = nameParts(operName).join('.');
  return name === operator || (name === '' && operator === '=');
}

/** `left <> ALL (SELECT …)`, which is `NOT (left IN (SELECT …))`. */
function notIn(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const arg = bindInQuery(select, node, env);
  return env.ctx.at(Object.freeze({ kind: 'not', arg, type: 'bool' }), node.location);
}

function selectOf(node: Node | undefined, env: Environment): SelectStmt {
  if (node !== undefined && 'SelectStmt' in node) return node.SelectStmt;
  throw env.ctx.unsupported('this subquery', undefined);
}

function bindScalarQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { ctx } = env;
  const { query, columns } = bindQuery(select, ctx, env.scope);
  const only = columns[0];
  if (only === undefined || columns.length !== 1) {
    throw ctx.mismatch('a subquery used as a value must have one column', node.location);
  }
  return ctx.at(Object.freeze({ kind: 'scalar_query', query, type: only.type }), node.location);
}

function bindExists(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { query } = bindQuery(select, env.ctx, env.scope);
  return env.ctx.at(Object.freeze({ kind: 'exists', query, type: 'bool' }), node.location);
}

function bindInQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { ctx } = env;
  const at = node.location;
  const test = required(node.testexpr);
  if (rowItems(test) !== null)
    throw ctx.unsupported('a row compared with a subquery', at, 'use it as a condition of WHERE by itself');
  const { query, columns } = bindQuery(select, ctx, env.scope);
  const [only, ...more] = columns;
  if (only === undefined || more.length > 0)
    throw ctx.mismatch('a subquery used as a value must have one column', at);
  const arg = bindExpression(test, env);
  const { definition, argumentTypes } = operatorFor('=', typeOfBound(arg), only.type, at, ctx);
  const [left = only.type, right = only.type] = argumentTypes;
  return ctx.at(
    Object.freeze({
      kind: 'in_query',
      equality: definition,
      arg: coerce(arg, left, ctx, at),
      query: retypeOutputs(query, [right], ctx),
      negated: false,
      type: 'bool',
    }),
    at,
  );
}
