import type { FuncCall, Node } from '@pgsql/types';
import type { Edge, Relation } from '../catalog.js';
import type { EntityScan, Expr, FromItem, RuntimeScan } from '../plan.js';
import type { Hop } from '../runtime.js';
import { nearest } from '../text.js';
import { arrayOf, isArray, type TypeName } from '../types.js';
import { infix } from './a-expr.js';
import { placeOf, textOf } from './ast.js';
import { coerce } from './coerce.js';
import type { BindContext } from './context.js';
import { bindExpression } from './expression.js';
import {
  countArgument,
  locationOf,
  type NamedArguments,
  nameArgument,
  namedArguments,
  refuseComputed,
  requiredArgument,
} from './named-arguments.js';
import { draftScan, type TraversalDraft } from './runtime-draft.js';
import { columnsFor, innerScope, type ScopeColumn, type ScopeItem } from './scope.js';

const MAX_HOPS = 16;
const DEFAULT_HOPS = 4;
const MAX_PER_HOP = 10_000;
const DEFAULT_PER_HOP = 1_000;

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
  const route = routeOf(anchor, target, viaArgument(args, ctx), directionArgument(args, ctx), args, ctx);
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
  const key = keyOf(target, args, ctx);
  const draft: TraversalDraft = {
    kind: 'traversal',
    source: ctx.nextSource(),
    anchor: anchor.name,
    target: target.name,
    keys: keysArgument(args, keyOf(anchor, args, ctx), ctx),
    hops: route.map((step) => hopOf(step, ctx)),
    repeats: anchor.name === target.name && route.length === 1,
    maxHops,
    perHop: countArgument(args, 'per_hop', 1, MAX_PER_HOP, DEFAULT_PER_HOP, ctx),
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
  const left = Object.freeze({ kind: 'column', source: id, name: key, type: keyType } as const);
  const right = Object.freeze({ kind: 'column', source: draft.source, name: 'key', type: keyType } as const);
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
  const order = Object.freeze([
    Object.freeze({ kind: 'column', source: draft.source, name: 'depth', type: 'int4' } as const),
    left,
  ]);
  return { item, items: [{ source: id, alias: alias ?? 'traverse', columns, relation: target, order }] };
}

function entityArgument(args: NamedArguments, name: string, ctx: BindContext): Relation {
  const wanted = nameArgument(args, name, ctx);
  const relation = ctx.catalog.relations.get(wanted);
  if (relation?.kind !== 'entity' || !ctx.access.relations.has(wanted)) {
    const visible = [...ctx.access.relations.keys()].filter(
      (n) => ctx.catalog.relations.get(n)?.kind === 'entity',
    );
    throw ctx.error(
      'unknownRelation',
      { relation: wanted, near: nearest(wanted, visible) },
      locationOf(requiredArgument(args, name, ctx), args),
    );
  }
  return relation;
}

/** The one key column by which rows of `relation` are walked. */
function keyOf(relation: Relation, args: NamedArguments, ctx: BindContext): { name: string; type: TypeName } {
  const [name, ...more] = relation.primaryKey;
  const column = relation.columns.find((c) => c.name === name);
  if (name === undefined || column === undefined || more.length > 0) {
    throw ctx.error(
      'unresolvable',
      { detail: `\`${relation.name}\` has a key of several columns, which TRAVERSE cannot walk`, hint: null },
      args.location,
    );
  }
  return { name, type: column.type };
}

/** `('a', 'b')`, `('a')`, `ARRAY['a']` or `$1`, as an array of the anchor's key type. */
function keysArgument(args: NamedArguments, key: { type: TypeName }, ctx: BindContext): Expr {
  const node = requiredArgument(args, 'keys', ctx);
  if (isArray(key.type))
    throw ctx.error('unsupported', { construct: 'a key that is an array', hint: null }, args.location);
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
    const text = textOf(n);
    if (text === null)
      throw ctx.error(
        'typeMismatch',
        { detail: '`via` is the name of a link, or a list of names', hint: null },
        locationOf(n, args),
      );
    return text;
  });
}

type Direction = 'in' | 'out' | 'both';

function directionArgument(args: NamedArguments, ctx: BindContext): Direction | null {
  const node = args.byName.get('direction');
  if (node === undefined) return null;
  const text = textOf(node);
  if (text !== 'in' && text !== 'out' && text !== 'both') {
    throw ctx.error(
      'typeMismatch',
      { detail: "`direction` is 'in', 'out' or 'both'", hint: null },
      locationOf(node, args),
    );
  }
  return text;
}

/** One link walked one way, or both ways at once for a link of an entity with itself. */
interface Step {
  readonly edge: Edge;
  readonly from: string;
  readonly to: string;
  readonly ways: readonly ('out' | 'in')[];
}

/** The links that this caller may see: those whose ends and bridge are visible. */
function visibleEdges(ctx: BindContext): readonly Edge[] {
  const sees = (name: string): boolean => ctx.access.relations.has(name);
  return ctx.catalog.edges.filter(
    (e) => sees(e.from) && sees(e.to) && (e.bridge === null || sees(e.bridge.name)),
  );
}

/** The shortest way over visible links. Several of one length are the caller's to choose between. */
function routeOf(
  anchor: Relation,
  target: Relation,
  via: readonly string[] | null,
  direction: Direction | null,
  args: NamedArguments,
  ctx: BindContext,
): readonly Step[] {
  const edges = visibleEdges(ctx).filter((e) => via === null || via.includes(e.name));
  const unknown = via?.find((name) => !edges.some((e) => e.name === name));
  if (unknown !== undefined) {
    throw ctx.error(
      'unknownRelation',
      {
        relation: unknown,
        near: nearest(
          unknown,
          visibleEdges(ctx).map((e) => e.name),
        ),
      },
      args.location,
    );
  }
  const routes = shortestRoutes(anchor.name, target.name, edges, direction);
  const [route, ...others] = routes;
  const between = `\`${anchor.name}\` and \`${target.name}\``;
  if (route === undefined) {
    throw ctx.error(
      'unresolvable',
      { detail: `no declared way between ${between}`, hint: null },
      args.location,
    );
  }
  if (others.length > 0) {
    const names = routes.map((r) => r.map((s) => s.edge.name).join(' → ')).join('; ');
    throw ctx.error(
      'unresolvable',
      { detail: `several ways of one length between ${between}: ${names}`, hint: "choose with via => '…'" },
      args.location,
    );
  }
  return route;
}

function shortestRoutes(
  from: string,
  to: string,
  edges: readonly Edge[],
  direction: Direction | null,
): readonly (readonly Step[])[] {
  let frontier: readonly (readonly Step[])[] = stepsFrom(from, edges, direction).map((s) => [s]);
  const seen = new Set([from]);
  for (let length = 1; length <= MAX_HOPS && frontier.length > 0; length++) {
    const arrived = frontier.filter((r) => r.at(-1)?.to === to);
    if (arrived.length > 0) return arrived;
    for (const route of frontier) seen.add(route.at(-1)?.to ?? from);
    frontier = frontier.flatMap((route) =>
      stepsFrom(route.at(-1)?.to ?? from, edges, direction)
        .filter((s) => !seen.has(s.to))
        .map((s) => [...route, s]),
    );
  }
  return [];
}

function stepsFrom(entity: string, edges: readonly Edge[], direction: Direction | null): readonly Step[] {
  return edges.flatMap((edge): readonly Step[] => {
    if (edge.from === entity && edge.to === entity) {
      const ways = direction === 'both' ? (['out', 'in'] as const) : ([direction ?? 'out'] as const);
      return [{ edge, from: entity, to: entity, ways }];
    }
    if (edge.from === entity && direction !== 'in')
      return [{ edge, from: entity, to: edge.to, ways: ['out'] }];
    if (edge.to === entity && direction !== 'out')
      return [{ edge, from: entity, to: edge.from, ways: ['in'] }];
    return [];
  });
}

/** The step as OSL-SQL: the caller's policy then holds on both entities and on the bridge by itself. */
function hopOf(step: Step, ctx: BindContext): Hop {
  const texts = step.ways.map((way) => wayText(step, way, ctx));
  const all = texts.length === 1 ? texts[0] : texts.map((t) => `(${t})`).join(' union ');
  const text =
    `select source, target from (select source, target, row_number() over (partition by source order by target) as n ` +
    `from (${all}) w) r where n <= $2 order by source, target limit $3`;
  return Object.freeze({ edge: step.edge.name, from: step.from, to: step.to, text });
}

function wayText(step: Step, way: 'out' | 'in', ctx: BindContext): string {
  const { edge } = step;
  const out = way === 'out';
  const near = out ? edge.fromColumns : edge.toColumns;
  const far = out ? edge.toColumns : edge.fromColumns;
  const both = (left: string, a: readonly string[], right: string, b: readonly string[]): string =>
    a.map((column, i) => `${left}.${quoted(column)} = ${right}.${quoted(b[i] ?? '')}`).join(' and ');
  const key = (name: string): string => quoted(ctx.catalog.relations.get(name)?.primaryKey[0] ?? '');
  const x = `osl.entities.${quoted(step.from)} x`;
  const y = `osl.entities.${quoted(step.to)} y`;
  const bridge = edge.bridge;
  const joined =
    bridge === null
      ? `${x} join ${y} on ${both('x', near, 'y', far)}`
      : `${x} join osl.entities.${quoted(bridge.name)} b on ${both('x', near, 'b', out ? bridge.fromColumns : bridge.toColumns)} ` +
        `join ${y} on ${both('b', out ? bridge.toColumns : bridge.fromColumns, 'y', far)}`;
  return `select distinct x.${key(step.from)} as source, y.${key(step.to)} as target from ${joined} where x.${key(step.from)} = any ($1)`;
}

/** Names come from the manifest. */
function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
