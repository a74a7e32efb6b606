import type { Node, SelectStmt, SubLink } from '@pgsql/types';
import type { Expr, Operation, Query } from '../plan.js';
import { conditionsOf, leavesOf, visitExpr } from '../walk.js';
import { bindArrayQuery, bindQuantifiedQuery } from './array-query.js';
import { nameParts, required, rowItems } from './ast.js';
import { coerce, typeOfBound } from './coerce.js';
import type { Environment } from './environment.js';
import { bindExpression } from './expression.js';
import { equalityOf, infix, operatorFor } from './infix.js';
import { reachesNext, seesBeside } from './lateral.js';
import { looksOutFreely } from './outward.js';
import { type BoundQuery, bindQuery } from './query.js';
import { isNameable, joinsAnywhere, resolveColumn } from './scope.js';
import { retypeOutputs } from './set-operation.js';

/** A subquery inside a value: a scalar, or a sealed semi- or anti-join. */
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
  const { ctx } = env;
  const before = ctx.contentRead;
  const { query } = bindQuery(select, ctx, env.scope);
  const free = ctx.world === 'physical' || (ctx.catalog.joins === 'any' && ctx.contentRead === before);
  if (!free && !isCorrelated(query, env)) {
    const detail = 'EXISTS joins on no sealed key';
    const hint =
      'compare a sealed key of the outer query to one of the inner, with =, in the WHERE of the subquery';
    throw ctx.error('unsealedJoin', { detail, hint }, node.location);
  }
  return ctx.at(Object.freeze({ kind: 'exists', query, type: 'bool' }), node.location);
}

/** Whether the query names a column of the scope around it: a sealed key, or what a function in FROM is given. */
function isCorrelated(query: Query, env: Environment): boolean {
  const outer = new Set(env.scope.items.map((i) => i.source));
  if (query.kind !== 'select') return false;
  let found = false;
  const given = leavesOf(query.from).flatMap((l) => (l.kind === 'rows' ? l.args : []));
  for (const conjunct of [...query.where, ...conditionsOf(query.from), ...given]) {
    visitExpr(conjunct, (e) => {
      if (e.kind === 'column' && outer.has(e.source)) found = true;
    });
  }
  return found;
}

function bindInQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { ctx, scope } = env;
  const test = required(node.testexpr);
  const before = ctx.contentRead;
  const inner: BoundQuery = bindQuery(select, ctx, scope);
  const column = inner.columns[0];
  // Keys on both sides, or what the manifest lets entities be joined on.
  const any = ctx.contentRead === before ? columnAnywhere(test, env) : null;
  const left = any ?? sealedColumn(test, env);
  const joins = column?.sealed === true || any !== null;
  if (column === undefined || inner.columns.length !== 1)
    throw ctx.mismatch('a subquery used as a value must have one column', node.location);
  const free = ctx.world === 'physical' || (ctx.catalog.joins === 'any' && ctx.contentRead === before);
  if (free && (left === null || !joins || column.type !== left.type))
    return inAnything(test, inner, node, env);
  if (left === null || !joins) {
    const detail = 'IN over a subquery is a join, and one of its sides is no sealed key';
    throw ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, node.location);
  }
  const equality = equalityOf(left.type, node.location, ctx);
  if (column.type !== left.type) {
    throw ctx.mismatch(`${left.type} and ${column.type} cannot be compared by IN`, node.location);
  }
  return ctx.at(
    Object.freeze({
      kind: 'in_query',
      equality,
      arg: left,
      query: inner.query,
      negated: false,
      type: 'bool',
    }),
    node.location,
  );
}

/** IN of any value, and of types that differ: what the query yields is compared as it is shown. */
function inAnything(test: Node, inner: BoundQuery, node: SubLink, env: Environment): Expr {
  const { ctx } = env;
  const at = node.location;
  if (rowItems(test) !== null)
    throw ctx.unsupported('a row compared with a subquery', at, 'use it as a condition of WHERE by itself');
  const arg = bindExpression(test, env);
  const type = inner.columns[0]?.type ?? 'text';
  const { definition, argumentTypes } = operatorFor('=', typeOfBound(arg), type, at, ctx);
  const [left = type, right = type] = argumentTypes;
  return ctx.at(
    Object.freeze({
      kind: 'in_query',
      equality: definition,
      arg: coerce(arg, left, ctx, at),
      query: retypeOutputs(inner.query, [right], ctx),
      negated: false,
      type: 'bool',
    }),
    at,
  );
}

/** `node` as a bare sealed column of the scope at hand, or null. */
export function sealedColumn(node: Node, env: Environment): Expr | null {
  if (!('ColumnRef' in node)) return null;
  const bound = bindExpression(node, env);
  if (bound.kind !== 'column') return null;
  const item = env.scope.items.find((i) => i.source === bound.source);
  // By its own name, not the one shown: a derived column may be shown under any name.
  return [...(item?.columns.values() ?? [])].some((c) => c.name === bound.name && c.sealed) ? bound : null;
}

/** `node` as a bare column of the scope at hand that the manifest lets be joined on, key or not; or null. */
function columnAnywhere(node: Node, env: Environment): Expr | null {
  if (!('ColumnRef' in node) || env.ctx.catalog.joins !== 'any') return null;
  const bound = bindExpression(node, env);
  if (bound.kind !== 'column') return null;
  const item = env.scope.items.find((i) => i.source === bound.source);
  return item !== undefined && joinsAnywhere(item, env.ctx) ? bound : null;
}

/** A hint that names the sealed keys that are in reach. */
export function sealedHint(env: Pick<Environment, 'scope'>): string {
  const keys = env.scope.items.flatMap((i) =>
    [...i.columns]
      .filter(([shown, c]) => c.sealed && isNameable(shown))
      .map(([shown]) => `${i.alias}.${shown}`),
  );
  return keys.length === 0 ? 'nothing here has a sealed key' : `sealed keys here: ${keys.join(', ')}`;
}

/**
 * `node` as an equality between an outer and an inner sealed key, which is the one way in which a subquery may
 * look outward; null where it does not look outward.
 */
export function bindCorrelation(node: Node, env: Environment): Operation | null {
  const { ctx, scope } = env;
  if (scope.parent === null || !('A_Expr' in node)) return null;
  const { kind, name, lexpr, rexpr, location } = node.A_Expr;
  const operator = (name ?? []).map((n) => ('String' in n ? n.String.sval : '')).join('.');
  if (kind !== 'AEXPR_OP' || operator !== '=' || lexpr === undefined || rexpr === undefined) return null;
  if (!('ColumnRef' in lexpr) || !('ColumnRef' in rexpr)) return null;
  const sides = [lexpr, rexpr].map((side) => {
    const parts = (side.ColumnRef.fields ?? []).map((f) => ('String' in f ? (f.String.sval ?? '') : '*'));
    return parts.includes('*') ? null : resolveColumn(scope, parts, ctx, side.ColumnRef.location);
  });
  const [left, right] = sides;
  if (left === undefined || right === undefined || left === null || right === null) return null;
  if (left.level === 0 && right.level === 0) return null;
  const isKeyPair =
    [left, right].every((side) => side.column.sealed) ||
    [left, right].every((side) => joinsAnywhere(side.item, ctx) && side.column.merged === undefined);
  const free = [left, right].every(
    (side) => side.level === 0 || looksOutFreely(scope, side, ctx) || seesBeside(env, side),
  );
  const isAdjacent =
    [left, right].some((side) => side.level === 0) && reachesNext(scope, left.level + right.level);
  if (!isAdjacent || !isKeyPair) {
    if (free) return null;
    const detail = 'a subquery may only look outward through an equality of sealed keys, one level up';
    throw ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, location);
  }
  const equality = infix('=', left.ref, right.ref, location, ctx);
  if (equality.kind !== 'operation' || equality.left?.kind !== 'column' || equality.right.kind !== 'column') {
    if (free) return null;
    const detail = `keys of types ${left.ref.type} and ${right.ref.type} cannot be joined`;
    throw ctx.error('unsealedJoin', { detail, hint: null }, location);
  }
  return equality;
}
