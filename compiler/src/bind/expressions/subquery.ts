import type { Node, SelectStmt, SubLink } from '@pgsql/types';
import { requireFunction } from '../../functions/resolve.js';
import { columnRef, inType } from '../../plan/nodes.js';
import type { Aggregate, DerivedTable, Expr } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { arrayOf, isArray } from '../../types/types.js';
import { type Location, nameParts, required, rowItems } from '../ast.js';
import type { BindContext } from '../context.js';
import type { BindEnvironment } from '../scope.js';
import { type BoundQuery, bindQuery, retypeOutputs } from '../select/query.js';
import { nameSubquery } from '../select/star.js';
import { bindExpression } from './expression.js';
import { arrayTypeOf, coerce, operatorFor, typeOfBound } from './operands.js';

export function bindSubLink(node: SubLink, env: BindEnvironment): Expr {
  const { ctx } = env;
  ctx.requireFeature('subqueries', node.location);
  const select = statementOf(node.subselect, env);
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

function isEquality({ operName }: SubLink, operator: '=' | '<>'): boolean {
  const name = nameParts(operName).join('.');
  return name === operator || (name === '' && operator === '=');
}

/** Binds `left <> ALL (SELECT …)` as `NOT (left IN (SELECT …))`. */
function notIn(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
  const arg = bindInQuery(select, node, env);
  return env.ctx.at(Object.freeze({ kind: 'not', arg, type: 'bool' }), node.location);
}

function statementOf(node: Node | undefined, env: BindEnvironment): SelectStmt {
  if (node !== undefined && 'SelectStmt' in node) return node.SelectStmt;
  throw env.ctx.unsupported('this subquery', undefined);
}

function bindScalarQuery(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
  const { ctx } = env;
  const { query, columns } = bindQuery(select, ctx, env.scope);
  const only = columns[0];
  if (only === undefined || columns.length !== 1) {
    throw ctx.mismatch('a subquery used as a value must have one column', node.location);
  }
  nameSubquery(node, only.name);
  return ctx.at(Object.freeze({ kind: 'scalar_query', query, type: only.type }), node.location);
}

function bindExists(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
  const { query } = bindQuery(select, env.ctx, env.scope);
  return env.ctx.at(Object.freeze({ kind: 'exists', query, type: 'bool' }), node.location);
}

function bindInQuery(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
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
  const { argumentTypes } = operatorFor('=', typeOfBound(arg), only.type, at, ctx);
  const [left = only.type, right = only.type] = argumentTypes;
  return ctx.at(
    Object.freeze({
      kind: 'in_query',
      arg: coerce(arg, left, ctx, at),
      query: retypeOutputs(query, [right], ctx),
      negated: false,
      type: 'bool',
    }),
    at,
  );
}

function bindArrayQuery(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
  return arrayOfRows(bindQuery(select, env.ctx, env.scope), node.location, env.ctx);
}

/** Binds `left op ANY | ALL (SELECT …)` by collecting the query's result into an array. */
function bindQuantifiedQuery(select: SelectStmt, node: SubLink, env: BindEnvironment): Expr {
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

/** Collects a single-column query into an array in the query's order. Without rows, the array is empty. */
function arrayOfRows({ query, columns }: BoundQuery, at: Location, ctx: BindContext): Expr {
  const [only, ...more] = columns;
  if (only === undefined || more.length > 0)
    throw ctx.mismatch('a subquery used as a value must have one column', at);
  const type = arrayTypeOf(only.type, ctx, at);
  const from: DerivedTable = Object.freeze({ kind: 'derived', id: ctx.nextSource(), query });
  const { definition } = requireFunction('array_agg', [only.type]);
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
