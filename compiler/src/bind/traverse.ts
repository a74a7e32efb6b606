import type { FuncCall, Node } from '@pgsql/types';
import type { Relation } from '../catalog.js';
import { plainName } from '../full-name.js';
import { columnRef } from '../nodes.js';
import type { EntityScan, Expr, FromItem, RuntimeScan } from '../plan.js';
import { nearest } from '../text.js';
import { arrayOf, isArray, type TypeName } from '../types.js';
import { constantText, placeOf } from './ast.js';
import { coerce } from './coerce.js';
import type { BindContext } from './context.js';
import { bindExpression } from './expression.js';
import { infix } from './infix.js';
import {
  countArgument,
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';
import { type Direction, hopOf, MAX_HOPS, routeOf } from './route.js';
import { draftScan, mostPerHop, type TraversalDraft } from './runtime-draft.js';
import { columnsFor, innerScope, type ScopeColumn, type ScopeItem } from './scope.js';

const DEFAULT_HOPS = 4;

const ARGUMENTS = ['anchor', 'target', 'keys', 'via', 'direction', 'max_hops', 'per_hop'];

/** `TRAVERSE(anchor => '…', target => '…', keys => ('…', …))` in FROM: the target's rows, with `depth`. */
export function bindTraverse(
  call: FuncCall,
  alias: string | undefined,
  ctx: BindContext,
): { item: FromItem; items: readonly ScopeItem[] } {
  const args = namedArguments('TRAVERSE', call, ARGUMENTS, ctx);
  const anchor = entityArgument(args, 'anchor', ctx);
  const target = entityArgument(args, 'target', ctx);
  const maxHops = countArgument(args, 'max_hops', 1, MAX_HOPS, DEFAULT_HOPS, ctx);
  const [anchorKey, key] = [keyOf(anchor, args, ctx), keyOf(target, args, ctx)];
  const ends = { anchor: anchor.name, target: target.name };
  const route = routeOf(ends, viaArgument(args, ctx), directionArgument(args, ctx), args.location, ctx);
  if (route.length > maxHops) {
    throw ctx.error(
      'unresolvable',
      {
        detail: `the way from \`${anchor.name}\` to \`${target.name}\` takes ${route.length} hops, more than max_hops`,
        hint: null,
      },
      args.location,
    );
  }
  const most = mostPerHop(ctx.catalog);
  const draft: TraversalDraft = {
    kind: 'traversal',
    source: ctx.nextSource(),
    anchor: anchor.name,
    target: target.name,
    keys: keysArgument(args, anchorKey, ctx),
    hops: route.map((step) => hopOf(step, ctx)),
    repeats: anchor.name === target.name && route.length === 1,
    maxHops,
    perHop: args.byName.has('per_hop') ? countArgument(args, 'per_hop', 1, most, most, ctx) : null,
    offered: new Map<string, TypeName>([
      ['key', key.type],
      ['depth', 'int4'],
    ]),
  };
  const runtime = draftScan(draft, ctx.runtime(draft, call.location));
  return joinedTarget(target, key.name, key.type, draft, runtime, alias, ctx);
}

/** The target's governed rows joined to the keys that the walk has found. */
function joinedTarget(
  target: Relation,
  key: string,
  keyType: TypeName,
  draft: TraversalDraft,
  runtime: RuntimeScan,
  alias: string | undefined,
  ctx: BindContext,
): { item: FromItem; items: readonly ScopeItem[] } {
  const id = ctx.nextSource();
  const scan: EntityScan = Object.freeze({ kind: 'entity', id, relation: target, columns: [] });
  ctx.use(id, key);
  ctx.use(draft.source, 'key');
  ctx.use(draft.source, 'depth');
  const left = columnRef(id, key, keyType);
  const right = columnRef(draft.source, 'key', keyType);
  const on = infix('=', left, right, undefined, ctx);
  const access = ctx.access.relations.get(target.name);
  if (on.kind !== 'operation' || access === undefined)
    throw ctx.error('unknownRelation', { relation: target.name, near: null }, undefined);
  const columns = new Map<string, ScopeColumn>(columnsFor(target, access));
  columns.set('depth', {
    name: 'depth',
    type: 'int4',
    sealed: false,
    denied: false,
    starred: true,
    source: draft.source,
  });
  const item: FromItem = Object.freeze({
    kind: 'join',
    sealed: true,
    type: 'inner',
    left: scan,
    right: runtime,
    on: Object.freeze([on]),
  });
  const order = Object.freeze([columnRef(draft.source, 'depth', 'int4'), left]);
  return { item, items: [{ source: id, alias: alias ?? 'traverse', columns, relation: target, order }] };
}

function entityArgument(args: NamedArguments, name: string, ctx: BindContext): Relation {
  const wanted = plainName('entities', nameArgument(args, name, ctx));
  const relation = ctx.catalog.relations.get(wanted);
  const at = locationOf(requiredArgument(args, name, ctx), args);
  if (relation?.kind === 'entity') ctx.refuseDenied(wanted, wanted, at);
  if (relation?.kind !== 'entity' || !ctx.access.relations.has(wanted)) {
    const visible = [...ctx.access.relations.keys()].filter(
      (n) => ctx.catalog.relations.get(n)?.kind === 'entity',
    );
    throw ctx.error('unknownRelation', { relation: wanted, near: nearest(wanted, visible) }, at);
  }
  return relation;
}

/**
 * The one key column by which rows of `relation` are walked. What is wrong with a key that the caller does not see is
 * not told: its columns have names.
 */
function keyOf(relation: Relation, args: NamedArguments, ctx: BindContext): { name: string; type: TypeName } {
  const access = ctx.access.relations.get(relation.name);
  const visible = access === undefined ? new Map<string, ScopeColumn>() : columnsFor(relation, access);
  const unresolvable = (detail: string) =>
    ctx.error('unresolvable', { detail: `\`${relation.name}\` ${detail}`, hint: null }, args.location);
  const columns = relation.primaryKey.map((name) => visible.get(name));
  if (columns.includes(undefined)) throw unresolvable('cannot be walked: its key is not for this caller');
  const [column, ...more] = columns;
  if (column === undefined || more.length > 0)
    throw unresolvable('has a key of several columns, which TRAVERSE cannot walk');
  if (column.denied) throw ctx.error('denied', { object: `${relation.name}.${column.name}` }, args.location);
  return column;
}

/** `('a', 'b')`, `('a')`, `ARRAY['a']` or `$1`, as an array of the anchor's key type. */
function keysArgument(args: NamedArguments, key: { type: TypeName }, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'keys', ctx);
  if (isArray(key.type)) throw ctx.unsupported('a key that is an array', args.location);
  const scope = innerScope(null, [], new Map());
  const env = {
    ctx,
    scope,
    clause: 'keys',
    aggregates: false,
    windows: false,
    namedWindows: new Map(),
    policy: false,
  };
  const items: readonly Node[] | null =
    'RowExpr' in node ? (node.RowExpr.args ?? []) : 'A_Const' in node ? [node] : null;
  const constant = (n: Node, type: TypeName): Expr => {
    const at = placeOf(n) ?? args.location;
    const value = coerce(bindExpression(n, env), type, ctx, at);
    refuseComputed(value, 'keys', at, ctx);
    return value;
  };
  if (items === null) return constant(node, arrayOf(key.type));
  const element = key.type;
  const values = items.map((i) => constant(i, element));
  const type = arrayOf(key.type);
  return Object.freeze({ kind: 'array', items: Object.freeze(values), type });
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

function directionArgument(args: NamedArguments, ctx: BindContext): Direction | null {
  const node = args.byName.get('direction');
  if (node === undefined) return null;
  const text = constantText(node);
  if (text !== 'in' && text !== 'out' && text !== 'both') {
    throw ctx.mismatch("`direction` is 'in', 'out' or 'both'", locationOf(node, args));
  }
  return text;
}
