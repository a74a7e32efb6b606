import type { Node } from '@pgsql/types';
import type { Relation } from '../../catalog/catalog.js';
import type { Expr, Query } from '../../plan/plan.js';
import { type ArrayType, arrayOf, isArray, type ScalarType } from '../../types/types.js';
import { nameParts, placeOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { plainEnvironment } from '../environment.js';
import { coerce } from '../expressions/coerce.js';
import { bindExpression } from '../expressions/expression.js';
import { columnsFor, innerScope, type ScopeColumn } from '../scope.js';
import { bindQuery } from '../select/query.js';
import { type NamedArguments, refuseComputed, requiredArgument } from './named-arguments.js';

/** A column of an entity's primary key, used by a traversal. */
export interface KeyColumn {
  readonly name: string;
  readonly type: ScalarType;
}

/** Primary key of `relation`. Errors about a key that the caller cannot see name no columns. */
export function keyOf(relation: Relation, args: NamedArguments, ctx: BindContext): readonly KeyColumn[] {
  const access = ctx.access.relations.get(relation.name);
  const visible = access === undefined ? new Map<string, ScopeColumn>() : columnsFor(relation, access);
  const unresolvable = (detail: string) =>
    ctx.error('unresolvable', { detail: `\`${relation.name}\` ${detail}`, hint: null }, args.location);
  if (relation.primaryKey.length === 0) throw unresolvable('has no key, by which TRAVERSE walks');
  const columns = relation.primaryKey.flatMap((name) => visible.get(name) ?? []);
  if (columns.length < relation.primaryKey.length)
    throw unresolvable('cannot be walked: its key is not for this caller');
  const denied = columns.find((c) => c.denied);
  if (denied !== undefined)
    throw ctx.error('denied', { object: `${relation.name}.${denied.name}` }, args.location);
  return columns.map(({ name, type }) => {
    if (isArray(type)) throw ctx.unsupported('a key that is an array', args.location);
    return { name, type };
  });
}

/** The start keys: one array for each key column, all of the same length. */
export function keysArgument(
  args: NamedArguments,
  key: readonly KeyColumn[],
  ctx: BindContext,
): readonly Expr[] {
  const node = requiredArgument(args, 'keys', ctx);
  const [only, ...more] = key;
  const given =
    only === undefined || more.length > 0 ? tuples(node, key, args, ctx) : [singles(node, only, args, ctx)];
  return Object.freeze(given);
}

/** `('a', 'b')`, `('a')`, `ARRAY['a']` or `$1`. */
function singles(node: Node, { type }: KeyColumn, args: NamedArguments, ctx: BindContext): Expr {
  const items: readonly Node[] | null =
    'RowExpr' in node ? (node.RowExpr.args ?? []) : 'A_Const' in node ? [node] : null;
  if (items === null) return constant(node, arrayOf(type), args, ctx);
  return arrayOfAll(items, type, args, ctx);
}

/** `(('a', 1), ('b', 2))`, a single key `('a', 1)`, an ARRAY of keys, or one array per column: `unnest($1, $2)`. */
function tuples(
  node: Node,
  key: readonly KeyColumn[],
  args: NamedArguments,
  ctx: BindContext,
): readonly Expr[] {
  const columns = columnsOfKeys(node, key.length);
  if (columns !== null)
    return key.map(({ type }, i) => constant(columns[i] ?? node, arrayOf(type), args, ctx));
  const rows = rowsOfKeys(node, key.length);
  if (rows === null) {
    const shape = (n: number): string => `(${key.map((c) => `${c.name} ${n}`).join(', ')})`;
    const detail = `\`keys\` of a key of ${key.length} columns are rows of ${key.length} values`;
    throw ctx.mismatch(detail, placeOf(node) ?? args.location, `keys => (${shape(1)}, ${shape(2)}, …)`);
  }
  return key.map(({ type }, i) =>
    arrayOfAll(
      rows.flatMap((row) => row[i] ?? []),
      type,
      args,
      ctx,
    ),
  );
}

function columnsOfKeys(node: Node, width: number): readonly Node[] | null {
  if (!('FuncCall' in node) || nameParts(node.FuncCall.funcname).at(-1) !== 'unnest') return null;
  const arrays = node.FuncCall.args ?? [];
  return arrays.length === width ? arrays : null;
}

/** Keys listed in `node`; null unless all have `width` values. */
function rowsOfKeys(node: Node, width: number): readonly (readonly Node[])[] | null {
  const items =
    'RowExpr' in node
      ? (node.RowExpr.args ?? [])
      : 'A_ArrayExpr' in node
        ? (node.A_ArrayExpr.elements ?? [])
        : null;
  if (items === null) return null;
  const isOne = 'RowExpr' in node && items.every((i) => !('RowExpr' in i));
  const rows = isOne ? [items] : items.map((i) => ('RowExpr' in i ? (i.RowExpr.args ?? []) : []));
  return rows.every((r) => r.length === width) ? rows : null;
}

function arrayOfAll(nodes: readonly Node[], element: ScalarType, args: NamedArguments, ctx: BindContext) {
  const items = Object.freeze(nodes.map((n) => constant(n, element, args, ctx)));
  return Object.freeze({ kind: 'array' as const, items, type: arrayOf(element) });
}

function constant(node: Node, type: ScalarType | ArrayType, args: NamedArguments, ctx: BindContext): Expr {
  const env = plainEnvironment(ctx, innerScope(null, [], new Map()), 'keys');
  const at = placeOf(node) ?? args.location;
  const value = coerce(bindExpression(node, env), type, ctx, at);
  refuseComputed(value, 'keys', at, ctx);
  return value;
}

/**
 * Binds `keys => (SELECT …)` or `keys => ARRAY(SELECT …)`, an uncorrelated query of start keys. Null if the keys are
 * values.
 */
export function startQuery(args: NamedArguments, key: readonly KeyColumn[], ctx: BindContext): Query | null {
  const node = args.byName.get('keys');
  const link = node !== undefined && 'SubLink' in node ? node.SubLink : null;
  const select = link?.subselect;
  const isList = link?.subLinkType === 'EXPR_SUBLINK' || link?.subLinkType === 'ARRAY_SUBLINK';
  if (link === null || !isList || select === undefined || !('SelectStmt' in select)) return null;
  ctx.requireFeature('subqueries', link.location);
  const { query, columns } = bindQuery(select.SelectStmt, ctx, null);
  const fits = columns.length === key.length && columns.every((c, i) => c.type === key[i]?.type);
  if (fits) return query;
  const wanted = key.map((c) => `${c.name} ${c.type}`).join(', ');
  throw ctx.mismatch(`the query of \`keys\` must yield the key of the anchor: ${wanted}`, link.location);
}
