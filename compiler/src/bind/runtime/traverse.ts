import type { FuncCall } from '@pgsql/types';
import { plainName, type Relation } from '../../catalog/catalog.js';
import { columnRef } from '../../plan/nodes.js';
import type { EntityScan, FromItem, RuntimeScan } from '../../plan/plan.js';
import { PATH, walkedKey } from '../../plan/runtime.js';
import { nearestInLiteral } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { constantText } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/infix.js';
import { columnsOf } from '../manifest/computed.js';
import type { BoundItem, ScopeColumn } from '../scope.js';
import {
  countArgument,
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  requiredArgument,
} from './named-arguments.js';
import { hopOf, MAX_HOPS, routeOf, type WalkDirection } from './route.js';
import { draftScan, mostPerHop, type TraversalDraft } from './runtime-draft.js';
import { type KeyColumn, keyOf, keysArgument, startQuery } from './walk-keys.js';

const DEFAULT_HOPS = 4;

const ARGUMENTS = ['anchor', 'target', 'keys', 'via', 'direction', 'max_hops', 'per_hop'];

/** `TRAVERSE(anchor => '…', target => '…', keys => ('…', …))` in FROM: rows of the target with `depth`. */
export function bindTraverse(call: FuncCall, alias: string | undefined, ctx: BindContext): BoundItem {
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
  const runtime = draftScan(draft, ctx.runtime(draft, call.location));
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
  const wanted = plainName('entities', nameArgument(args, name, ctx));
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
