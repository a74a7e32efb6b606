import type { Edge } from '../../catalog/catalog.js';
import type { Hop } from '../../plan/runtime.js';
import { quoteIdentifier } from '../../text/sql-text.js';
import { nearestInLiteral } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { columnsFor } from '../scope.js';

export const MAX_HOPS = 16;

export type WalkDirection = 'in' | 'out' | 'both';

/** A link that is traversed in one direction, or in both if it connects an entity to itself. */
interface WalkStep {
  readonly edge: Edge;
  readonly from: string;
  readonly to: string;
  readonly ways: readonly ('out' | 'in')[];
}

interface VisibleLinks {
  readonly usable: readonly Edge[];
  /** Links that are blocked only by an explicit deny rule, each with the denied object. */
  readonly denied: ReadonlyMap<Edge, string>;
}

/**
 * Classifies links. A link is usable if the caller may use all columns that a traversal reads: the join columns, the
 * keys of both ends and the bridge's columns. Links with a hidden column are treated as nonexistent, so that no message
 * can name them.
 */
function linksOf(ctx: BindContext): VisibleLinks {
  const usable: Edge[] = [];
  const denied = new Map<Edge, string>();
  for (const edge of ctx.catalog.edges) {
    const found = visibilityOf(edge, ctx);
    if (found === 'usable') usable.push(edge);
    else if (found !== 'hidden') denied.set(edge, found.denies);
  }
  return { usable, denied };
}

type LinkVisibility = 'usable' | 'hidden' | { readonly denies: string };

function visibilityOf({ from, to, fromColumns, toColumns, bridge }: Edge, ctx: BindContext): LinkVisibility {
  const primaryKey = (entity: string): readonly string[] =>
    ctx.catalog.relations.get(entity)?.primaryKey ?? [];
  // Traversals need a key at both ends.
  if (primaryKey(from).length === 0 || primaryKey(to).length === 0) return 'hidden';
  const parts = [
    visibilityOfPart(from, [...fromColumns, ...primaryKey(from)], ctx),
    visibilityOfPart(to, [...toColumns, ...primaryKey(to)], ctx),
    ...(bridge === null
      ? []
      : [visibilityOfPart(bridge.name, [...bridge.fromColumns, ...bridge.toColumns], ctx)]),
  ];
  return parts.find((p) => p === 'hidden') ?? parts.find((p) => p !== 'usable') ?? 'usable';
}

function visibilityOfPart(name: string, columns: readonly string[], ctx: BindContext): LinkVisibility {
  const relation = ctx.catalog.relations.get(name);
  const whole = ctx.access.denied?.get(name);
  const access = ctx.access.relations.get(name) ?? whole;
  if (relation === undefined || access === undefined) return 'hidden';
  const visible = columnsFor(relation, access);
  if (columns.some((c) => !visible.has(c))) return 'hidden';
  if (whole !== undefined) return { denies: name };
  const column = columns.find((c) => visible.get(c)?.denied);
  return column === undefined ? 'usable' : { denies: `${name}.${column}` };
}

/**
 * Returns the shortest route over usable links. If there are several, the caller must choose.
 *
 * @throws QueryError E0512 for an unknown link, E2101 if only a deny rule blocks the route, E1001 if there is no route
 * or more than one
 */
export function routeOf(
  { anchor, target }: { readonly anchor: string; readonly target: string },
  via: readonly string[] | null,
  direction: WalkDirection | null,
  at: Location,
  ctx: BindContext,
): readonly WalkStep[] {
  const { usable, denied } = linksOf(ctx);
  const wanted = (e: Edge): boolean => via === null || via.includes(e.name);
  for (const name of via ?? []) {
    if (usable.some((e) => e.name === name)) continue;
    const [, object] = [...denied].find(([e]) => e.name === name) ?? [];
    if (object !== undefined) throw ctx.error('denied', { object }, at);
    const near = nearestInLiteral(
      name,
      usable.map((e) => e.name),
    );
    throw ctx.error('unknownRelation', { relation: name, near }, at);
  }
  const routes = routesBetween(anchor, target, usable.filter(wanted), direction);
  const [route, ...others] = routes;
  const between = `\`${anchor}\` and \`${target}\``;
  if (route === undefined) {
    const all = [...usable, ...denied.keys()].filter(wanted);
    const [lost] = denied.size === 0 ? [] : routesBetween(anchor, target, all, direction);
    const object = lost?.map((s) => denied.get(s.edge)).find((o) => o !== undefined);
    if (object !== undefined) throw ctx.error('denied', { object }, at);
    const limits = [...(via === null ? [] : ['`via`']), ...(direction === null ? [] : ['`direction`'])];
    const isOpen = limits.length > 0 && routesBetween(anchor, target, usable, null).length > 0;
    const hint = isOpen ? `there is one without ${limits.join(' and ')}` : linksText(anchor, usable);
    throw ctx.unresolvable(`no declared way between ${between}`, at, hint);
  }
  if (others.length > 0) {
    const names = routes.map((r) => r.map((s) => s.edge.name).join(' → ')).join('; ');
    throw ctx.unresolvable(
      `several ways of one length between ${between}: ${names}`,
      at,
      "choose with via => '…'",
    );
  }
  return route;
}

const MOST_LISTED = 5;

function linksText(entity: string, edges: readonly Edge[]): string | null {
  const steps = stepsFrom(entity, edges, null);
  const listed = steps.slice(0, MOST_LISTED).map(({ edge, to }) => `\`${edge.name}\` to \`${to}\``);
  if (listed.length === 0) return null;
  return `from \`${entity}\` lead ${listed.join(', ')}${steps.length > MOST_LISTED ? ', …' : ''}`;
}

/**
 * Returns the shortest routes. Between rows of one entity without a link to itself, a route crosses a bridge and
 * returns, for example from authors to their co-authors.
 */
function routesBetween(
  from: string,
  to: string,
  edges: readonly Edge[],
  direction: WalkDirection | null,
): readonly (readonly WalkStep[])[] {
  const routes = shortestRoutes(from, to, edges, direction);
  if (routes.length > 0 || from !== to || direction === 'in' || direction === 'out') return routes;
  return edges.flatMap((edge) => {
    const far = edge.from === from ? edge.to : edge.to === from ? edge.from : null;
    if (far === null || edge.bridge === null) return [];
    const [there, back] = edge.from === from ? (['out', 'in'] as const) : (['in', 'out'] as const);
    return [
      [
        { edge, from, to: far, ways: [there] },
        { edge, from: far, to: from, ways: [back] },
      ],
    ];
  });
}

/** Maximum number of routes to an entity that are followed and listed. Two suffice to detect ambiguity. */
const MOST_WAYS = 20;

function shortestRoutes(
  from: string,
  to: string,
  edges: readonly Edge[],
  direction: WalkDirection | null,
): readonly (readonly WalkStep[])[] {
  let frontier: readonly (readonly WalkStep[])[] = stepsFrom(from, edges, direction).map((s) => [s]);
  const seen = new Set([from]);
  for (let length = 1; length <= MAX_HOPS && frontier.length > 0; length++) {
    const arrived = frontier.filter((r) => r.at(-1)?.to === to);
    if (arrived.length > 0) return arrived.slice(0, MOST_WAYS);
    for (const route of frontier) seen.add(route.at(-1)?.to ?? from);
    const ways = new Map<string, number>();
    frontier = frontier.flatMap((route) =>
      stepsFrom(route.at(-1)?.to ?? from, edges, direction)
        .filter((s) => !seen.has(s.to) && countUp(ways, s.to) <= MOST_WAYS)
        .map((s) => [...route, s]),
    );
  }
  return [];
}

function countUp(counts: Map<string, number>, name: string): number {
  const count = (counts.get(name) ?? 0) + 1;
  counts.set(name, count);
  return count;
}

function stepsFrom(
  entity: string,
  edges: readonly Edge[],
  direction: WalkDirection | null,
): readonly WalkStep[] {
  return edges.flatMap((edge): readonly WalkStep[] => {
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

/** Returns the step as an OSL-SQL query, so that policy applies to both entities and to the bridge. */
export function hopOf(step: WalkStep, ctx: BindContext): Hop {
  const keys = { source: keyOf(step.from, ctx), target: keyOf(step.to, ctx) };
  const texts = step.ways.map((way) => wayText(step, way, keys));
  const all = texts.length === 1 ? texts[0] : texts.map((t) => `(${t})`).join(' union all ');
  const [sourceWidth, targetWidth] = [keys.source.length, keys.target.length];
  const source = named('source', sourceWidth).join(', ');
  const target = named('target', targetWidth).join(', ');
  const text =
    `select ${source}, ${target} from (select distinct on (${target}) ${source}, ${target} ` +
    `from (${all}) w order by ${target}, ${source}) r order by ${source}, ${target} limit $${sourceWidth + 1}`;
  return Object.freeze({
    edge: step.edge.name,
    from: step.from,
    to: step.to,
    text,
    sourceWidth,
    targetWidth,
  });
}

type WalkKey = readonly { readonly name: string; readonly type: TypeName }[];

function keyOf(entity: string, ctx: BindContext): WalkKey {
  const relation = ctx.catalog.relations.get(entity);
  return (relation?.primaryKey ?? []).flatMap((name) => relation?.columns.find((c) => c.name === name) ?? []);
}

/** Returns the names of a key's output columns: `source`, or `source1`, `source2`, … */
function named(end: string, width: number): readonly string[] {
  return Array.from({ length: width }, (_, i) => (width === 1 ? end : `${end}${i + 1}`));
}

interface EndKeys {
  readonly source: WalkKey;
  readonly target: WalkKey;
}

function wayText({ edge, from, to }: WalkStep, way: 'out' | 'in', keys: EndKeys): string {
  const out = way === 'out';
  const near = out ? edge.fromColumns : edge.toColumns;
  const far = out ? edge.toColumns : edge.fromColumns;
  const both = (left: string, a: readonly string[], right: string, b: readonly string[]): string =>
    a
      .map((column, i) => `${left}.${quoteIdentifier(column)} = ${right}.${quoteIdentifier(b[i] ?? '')}`)
      .join(' and ');
  const x = `osl.entities.${quoteIdentifier(from)} x`;
  const y = `osl.entities.${quoteIdentifier(to)} y`;
  const bridge = edge.bridge;
  const joined =
    bridge === null
      ? `${x} join ${y} on ${both('x', near, 'y', far)}`
      : `${x} join osl.entities.${quoteIdentifier(bridge.name)} b on ${both('x', near, 'b', out ? bridge.fromColumns : bridge.toColumns)} ` +
        `join ${y} on ${both('b', out ? bridge.toColumns : bridge.fromColumns, 'y', far)}`;
  const outputs = (alias: string, end: 'source' | 'target'): string => {
    const names = named(end, keys[end].length);
    return keys[end].map((c, i) => `${alias}.${quoteIdentifier(c.name)} as ${names[i]}`).join(', ');
  };
  return `select ${outputs('x', 'source')}, ${outputs('y', 'target')} from ${joined} ${amongKeys(keys.source)}`;
}

function amongKeys(key: WalkKey): string {
  const [only, ...more] = key;
  if (only !== undefined && more.length === 0) return `where x.${quoteIdentifier(only.name)} = any ($1)`;
  const arrays = key.map(({ type }, i) => `$${i + 1}::${type}[]`).join(', ');
  const columns = key.map((_, i) => `c${i + 1}`);
  const equal = key.map(({ name }, i) => `x.${quoteIdentifier(name)} = k.c${i + 1}`).join(' and ');
  return `join unnest(${arrays}) as k(${columns.join(', ')}) on ${equal}`;
}
