import type { Node, SelectStmt, SubLink } from '@pgsql/types';
import type { QueryError } from '../errors.js';
import type { Expr, Operation, Query } from '../plan.js';
import { conditionsOf, visitExpr } from '../walk.js';
import { type Location, required } from './ast.js';
import type { BindContext } from './context.js';
import type { Environment } from './environment.js';
import { bindExpression } from './expression.js';
import { equalityOf, infix } from './infix.js';
import { type BoundQuery, bindQuery } from './query.js';
import { isNameable, resolveColumn } from './scope.js';

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
      return bindInQuery(select, node, env);
    default:
      throw ctx.unsupported(
        SUBLINKS.get(node.subLinkType ?? '') ?? 'this kind of subquery',
        node.location,
        'use IN or EXISTS',
      );
  }
}

const SUBLINKS: ReadonlyMap<string, string> = new Map([
  ['ALL_SUBLINK', 'ALL over a subquery'],
  ['ARRAY_SUBLINK', 'ARRAY over a subquery'],
  ['ROWCOMPARE_SUBLINK', 'a row compared with a subquery'],
]);

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
  const { query } = bindQuery(select, ctx, env.scope);
  if (ctx.world === 'semantic' && !isCorrelated(query, env)) {
    const detail = 'EXISTS joins on no sealed key';
    const hint =
      'compare a sealed key of the outer query to one of the inner, with =, in the WHERE of the subquery';
    throw ctx.error('unsealedJoin', { detail, hint }, node.location);
  }
  return ctx.at(Object.freeze({ kind: 'exists', query, type: 'bool' }), node.location);
}

/** Whether the query names a column of the scope around it; those references are sealed by construction. */
function isCorrelated(query: Query, env: Environment): boolean {
  const outer = new Set(env.scope.items.map((i) => i.source));
  if (query.kind !== 'select') return false;
  let found = false;
  for (const conjunct of [...query.where, ...conditionsOf(query.from)]) {
    visitExpr(conjunct, (e) => {
      if (e.kind === 'column' && outer.has(e.source)) found = true;
    });
  }
  return found;
}

function bindInQuery(select: SelectStmt, node: SubLink, env: Environment): Expr {
  const { ctx, scope } = env;
  const operator = (node.operName ?? []).map((n) => ('String' in n ? n.String.sval : '')).join('.');
  const test = required(node.testexpr);
  if (operator !== '' && operator !== '=') {
    throw ctx.unsupported(`${operator} ANY over a subquery`, node.location, 'use IN');
  }
  const inner: BoundQuery = bindQuery(select, ctx, scope);
  const column = inner.columns[0];
  const left = sealedColumn(test, env);
  if (left === null || column === undefined || inner.columns.length !== 1 || !column.sealed) {
    if (ctx.world === 'physical') {
      const construct = 'IN over a subquery of anything but one column in one column';
      throw ctx.unsupported(construct, node.location, 'join a derived table');
    }
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

/** Raw SQL has no sealed keys, but a subquery looks outward in the same one way. */
export function outwardLook(ctx: BindContext, location: Location): QueryError {
  const construct = 'an outer column anywhere but beside = and a column of the subquery';
  const hint = 'put the equality in the WHERE of the subquery, one level down, or join a derived table';
  return ctx.unsupported(construct, location, hint);
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
  if (
    left.level > 1 ||
    right.level > 1 ||
    left.level === right.level ||
    !left.column.sealed ||
    !right.column.sealed
  ) {
    if (ctx.world === 'physical') throw outwardLook(ctx, location);
    const detail = 'a subquery may only look outward through an equality of sealed keys, one level up';
    throw ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, location);
  }
  const equality = infix('=', left.ref, right.ref, location, ctx);
  if (equality.kind !== 'operation' || equality.left?.kind !== 'column' || equality.right.kind !== 'column') {
    const detail = `keys of types ${left.ref.type} and ${right.ref.type} cannot be joined`;
    throw ctx.error('unsealedJoin', { detail, hint: null }, location);
  }
  return equality;
}
