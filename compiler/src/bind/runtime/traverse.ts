import type { FuncCall, Node } from '@pgsql/types';
import { type Relation, unqualifiedName } from '../../catalog/catalog.js';
import { columnRef } from '../../plan/nodes.js';
import type { EntityScan, Expr, FromItem, Query, RuntimeScan } from '../../plan/plan.js';
import { PATH, walkedKey } from '../../plan/runtime.js';
import { nearestInLiteral } from '../../text/text.js';
import { type ArrayType, arrayOf, isArray, type ScalarType, type TypeName } from '../../types/types.js';
import { constantText, firstLocation, nameParts } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindExpression } from '../expressions/expression.js';
import { coerce, infix } from '../expressions/operands.js';
import { columnsOf } from '../manifest/computed.js';
import { type BoundItem, columnsFor, innerScope, plainEnvironment, type ScopeColumn } from '../scope.js';
import { bindQuery } from '../select/query.js';
import {
  countArgument,
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';
import { draftScan, mostPerHop, type TraversalDraft } from './runtime-draft.js';
import { hopOf, MAX_HOPS, routeOf, type WalkDirection } from './traversal-route.js';

const DEFAULT_HOPS = 4;

const ARGUMENTS = ['anchor', 'target', 'keys', 'via', 'direction', 'max_hops', 'per_hop'];

/** Binds `TRAVERSE(anchor => '…', target => '…', keys => ('…', …))`: rows of the target with their `depth`. */
export function bindTraverse(call: FuncCall, alias: string | undefined, ctx: BindContext): BoundItem {
  const args = namedArguments('TRAVERSE', call, ARGUMENTS, ctx);
  const anchor = entityArgument(args, 'anchor', ctx);
  const target = entityArgument(args, 'target', ctx);
  const maxHops = countArgument(args, 'max_hops', 1, MAX_HOPS, DEFAULT_HOPS, ctx);
  const [anchorKey, key] = [keyOf(anchor, args, ctx), keyOf(target, args, ctx)];
  const ends = { anchor: anchor.name, target: target.name };
  const route = routeOf(ends, viaArgument(args, ctx), directionArgument(args, ctx), args.location, ctx);
  if (route.length > maxHops) {
    throw ctx.unresolvable(
      `the way from \`${anchor.name}\` to \`${target.name}\` takes ${route.length} hops, more than max_hops`,
      args.location,
    );
  }
  const most = mostPerHop(ctx.catalog);
  const start = startQuery(args, anchorKey, ctx);
  const draft: TraversalDraft = {
    kind: 'traversal',
    source: ctx.nextSource(),
    anchor: anchor.name,
    target: target.name,
    keys: start === null ? keysArgument(args, anchorKey, ctx) : [],
    start,
    hops: route.map((step) => hopOf(step, ctx)),
    repeats: anchor.name === target.name,
    maxHops,
    perHop: args.byName.has('per_hop') ? countArgument(args, 'per_hop', 1, most, most, ctx) : null,
    offered: new Map<string, TypeName>([
      ...key.map(({ type }, i) => [walkedKey(i, key.length), type] as const),
      ['depth', 'int4'],
      [PATH, 'jsonb'],
    ]),
  };
  const runtime = draftScan(draft, ctx.addRuntime(draft, call.location));
  return joinedTarget(target, key, draft, runtime, alias, ctx);
}

function joinedTarget(
  target: Relation,
  key: readonly KeyColumn[],
  draft: TraversalDraft,
  runtime: RuntimeScan,
  alias: string | undefined,
  ctx: BindContext,
): BoundItem {
  const id = ctx.nextSource();
  const scan: EntityScan = Object.freeze({ kind: 'entity', id, relation: target, columns: [] });
  ctx.use(draft.source, 'depth');
  const own = key.map(({ name, type }) => columnRef(id, name, type));
  const on = own.map((left, i) => {
    ctx.use(id, left.name);
    const found = walkedKey(i, key.length);
    ctx.use(draft.source, found);
    return infix('=', left, columnRef(draft.source, found, left.type), undefined, ctx);
  });
  const access = ctx.access.relations.get(target.name);
  if (on.some((e) => e.kind !== 'operation') || access === undefined)
    throw ctx.error('unknownRelation', { relation: target.name, near: null }, undefined);
  const columns = new Map<string, ScopeColumn>(columnsOf(target, access, ctx));
  columns.set('depth', {
    name: 'depth',
    type: 'int4',
    sealed: false,
    denied: false,
    starred: true,
    source: draft.source,
  });
  // A column of the target named `path` takes precedence.
  if (!columns.has(PATH)) {
    const walked = { sealed: false, denied: false, starred: false, source: draft.source };
    columns.set(PATH, { name: PATH, type: 'jsonb', ...walked });
  }
  const item: FromItem = Object.freeze({
    kind: 'join',
    sealed: true,
    made: true,
    type: 'inner',
    left: scan,
    right: runtime,
    on: Object.freeze(on),
  });
  const order = Object.freeze([columnRef(draft.source, 'depth', 'int4'), ...own]);
  const named = { source: id, alias: alias ?? 'traverse', columns } as const;
  const items = [{ ...named, relation: target, parents: [], order }];
  return { item, items, named: true, content: true };
}

function entityArgument(args: NamedArguments, name: string, ctx: BindContext): Relation {
  const wanted = unqualifiedName('entities', nameArgument(args, name, ctx));
  const relation = ctx.catalog.relations.get(wanted);
  const at = locationOf(requiredArgument(args, name, ctx), args);
  if (relation?.kind === 'entity') ctx.refuseDenied(wanted, wanted, at);
  if (relation?.kind !== 'entity' || !ctx.access.relations.has(wanted)) {
    const visible = [...ctx.access.relations.keys()].filter(
      (n) => ctx.catalog.relations.get(n)?.kind === 'entity',
    );
    throw ctx.error('unknownRelation', { relation: wanted, near: nearestInLiteral(wanted, visible) }, at);
  }
  return relation;
}

function viaArgument(args: NamedArguments, ctx: BindContext): readonly string[] | null {
  const node = args.byName.get('via');
  if (node === undefined) return null;
  const nodes = 'RowExpr' in node ? (node.RowExpr.args ?? []) : [node];
  return nodes.map((n) => {
    const text = constantText(n);
    if (text === null)
      throw ctx.mismatch('`via` is the name of a link, or a list of names', locationOf(n, args));
    return text;
  });
}

function directionArgument(args: NamedArguments, ctx: BindContext): WalkDirection | null {
  const node = args.byName.get('direction');
  if (node === undefined) return null;
  const text = constantText(node);
  if (text !== 'in' && text !== 'out' && text !== 'both') {
    throw ctx.mismatch("`direction` is 'in', 'out' or 'both'", locationOf(node, args));
  }
  return text;
}

/** A column of an entity's primary key, used by a traversal. */
interface KeyColumn {
  readonly name: string;
  readonly type: ScalarType;
}

/** Returns the primary key of `relation`. If part of it is hidden, the error names no column. */
function keyOf(relation: Relation, args: NamedArguments, ctx: BindContext): readonly KeyColumn[] {
  const access = ctx.access.relations.get(relation.name);
  const visible = access === undefined ? new Map<string, ScopeColumn>() : columnsFor(relation, access);
  const unresolvable = (detail: string) => ctx.unresolvable(`\`${relation.name}\` ${detail}`, args.location);
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

/** Reads the start keys as one array per key column, all of the same length. */
function keysArgument(args: NamedArguments, key: readonly KeyColumn[], ctx: BindContext): readonly Expr[] {
  const node = requiredArgument(args, 'keys', ctx);
  const [only, ...more] = key;
  const given =
    only === undefined || more.length > 0 ? tuples(node, key, args, ctx) : [singles(node, only, args, ctx)];
  return Object.freeze(given);
}

/** Reads single-column keys: `('a', 'b')`, `('a')`, `ARRAY['a']` or `$1`. */
function singles(node: Node, { type }: KeyColumn, args: NamedArguments, ctx: BindContext): Expr {
  const items: readonly Node[] | null =
    'RowExpr' in node ? (node.RowExpr.args ?? []) : 'A_Const' in node ? [node] : null;
  if (items === null) return constant(node, arrayOf(type), args, ctx);
  return arrayOfAll(items, type, args, ctx);
}

/** Reads multi-column keys: `(('a', 1), ('b', 2))`, one key `('a', 1)`, an ARRAY, or `unnest($1, $2)`. */
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
    throw ctx.mismatch(detail, firstLocation(node) ?? args.location, `keys => (${shape(1)}, ${shape(2)}, …)`);
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

/** Returns the keys listed in `node`; null if it is not a list or if a key does not have `width` values. */
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
  const at = firstLocation(node) ?? args.location;
  const value = coerce(bindExpression(node, env), type, ctx, at);
  refuseComputed(value, 'keys', at, ctx);
  return value;
}

/**
 * Binds `keys => (SELECT ...)` or `keys => ARRAY(SELECT ...)`, an uncorrelated query that returns the start keys.
 * Returns null if the keys are given as values.
 */
function startQuery(args: NamedArguments, key: readonly KeyColumn[], ctx: BindContext): Query | null {
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
