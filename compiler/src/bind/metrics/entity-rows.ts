import type { Catalog, Edge, Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import type { Expr, FromItem, Operation } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { columnValue } from '../expressions/expression.js';
import { joinParents, scanEntity } from '../manifest/computed.js';
import { columnsFor, innerScope, resolveColumn, type ScopeItem } from '../scope.js';
import { operation } from './build.js';

/**
 * The rows of one entity, with linked entities joined. Only to-one links are allowed, as LEFT JOINs, so each row of
 * the entity occurs exactly once.
 */
export class EntityRows {
  readonly root: ScopeItem;
  readonly #ctx: BindContext;
  readonly #joined = new Map<string, ScopeItem>();
  #item: FromItem;

  /** @throws QueryError E0512 if the caller may not see the entity */
  constructor(entity: string, ctx: BindContext) {
    this.#ctx = ctx;
    const { scan, item } = scanEntity(entity, ctx);
    this.root = item;
    this.#item = scan;
  }

  get from(): FromItem {
    return joinParents(this.#item, [this.root, ...this.#joined.values()]) ?? this.#item;
  }

  /**
   * Returns a column of the entity at the end of `links`.
   *
   * @param metric the requested metric, for messages
   * @throws QueryError E1001 if there is not exactly one shortest to-one route; E2101 if policy denies the column
   */
  column(links: readonly DimensionLink[], name: string, metric: string): Expr {
    const route: LinkStep[] = [];
    for (const link of links) route.push(...this.#steps(route, link, metric));
    return columnOf(this.#at(route), name, this.#ctx);
  }

  #steps(so: LinkRoute, link: DimensionLink, metric: string): LinkRoute {
    const from = so.at(-1)?.to ?? this.root.alias;
    if (link.kind === 'entity') return routeTo(link.entity, from, metric, this.#ctx);
    const last = stepsFrom(link.from, this.#ctx).find(
      (s) => s.edge === link.name && s.to === link.to && s.toOne,
    );
    if (last === undefined) throw new InternalError(`relationship ${link.name} is gone`);
    return [...routeTo(link.from, from, metric, this.#ctx), last];
  }

  #at(route: LinkRoute): ScopeItem {
    const last = route.at(-1);
    if (last === undefined) return this.root;
    const key = route.map((s) => `${s.edge}>${s.to}`).join(' ');
    const known = this.#joined.get(key);
    if (known !== undefined) return known;
    const before = this.#at(route.slice(0, -1));
    const { scan, item } = scanEntity(last.to, this.#ctx);
    const on = Object.freeze(last.fromColumns.map((_, i) => this.#equality(before, item, last, i)));
    this.#item = Object.freeze({
      kind: 'join',
      sealed: true,
      made: true,
      type: 'left',
      left: this.#item,
      right: scan,
      on,
    });
    this.#joined.set(key, item);
    return item;
  }

  #equality(left: ScopeItem, right: ScopeItem, step: LinkStep, index: number): Operation {
    const a = columnOf(left, step.fromColumns[index] ?? '', this.#ctx);
    const b = columnOf(right, step.toColumns[index] ?? '', this.#ctx);
    const equality = operation('=', a, b, this.#ctx);
    if (equality.kind !== 'operation' || equality.left !== a || equality.right !== b)
      throw new InternalError(`the ends of ${step.edge} do not compare`);
    return equality;
  }
}

export function columnOf(item: ScopeItem, name: string, ctx: BindContext): Expr {
  const found = resolveColumn(innerScope(null, [item], new Map()), [name], ctx, undefined);
  return columnValue(found, ctx, undefined);
}

/** Returns the shortest to-one route. @throws QueryError E1001 if there is none or more than one */
function routeTo(to: string, from: string, metric: string, ctx: BindContext): LinkRoute {
  const [route, another] = shortestRoutes(from, to, ctx, (s) => s.toOne);
  if (route !== undefined && another === undefined) return route;
  const lead = `metric \`${metric}\` takes rows of \`${from}\``;
  const unresolvable = (detail: string, hint: string | null) =>
    ctx.unresolvable(`${lead}, ${detail}`, undefined, hint);
  if (route !== undefined && another !== undefined) {
    const ways = [route, another].map((r) => r.map((s) => `\`${s.edge}\``).join(', ')).join(' and by ');
    const hint = `say which: ${route.map((s) => s.edge).join('__')}__…`;
    throw unresolvable(`which lead to \`${to}\` by ${ways}`, hint);
  }
  const [any] = shortestRoutes(from, to, ctx, () => true);
  const wide = any?.find((s) => !s.toOne);
  if (wide === undefined)
    throw unresolvable(`and no declared relationship leads from there to \`${to}\``, null);
  const detail = `and relationship \`${wide.edge}\` leads from one \`${wide.from}\` to several \`${wide.to}\`, which would count rows several times`;
  throw unresolvable(detail, `group by what one \`${from}\` has one of`);
}

/** An element of a path to a dimension: a relationship, or an entity reached by the shortest route. */
export type DimensionLink =
  | { readonly kind: 'entity'; readonly entity: string }
  | { readonly kind: 'relationship'; readonly name: string; readonly from: string; readonly to: string };

/** A declared link, followed in one direction: `fromColumns[i]` equals `toColumns[i]`. */
export interface LinkStep {
  readonly edge: string;
  readonly from: string;
  readonly to: string;
  readonly fromColumns: readonly string[];
  readonly toColumns: readonly string[];
  readonly bridge: string | null;
  /** True if each row of `from` is linked to at most one row of `to`. */
  readonly toOne: boolean;
}

/** The links from one entity to another; empty if both are the same. */
export type LinkRoute = readonly LinkStep[];

const byCatalog = new WeakMap<Catalog, ReadonlyMap<string, readonly LinkStep[]>>();

/** Returns the links from `entity` that this caller may see and join on, in declared order. */
export function stepsFrom(entity: string, ctx: BindContext): readonly LinkStep[] {
  const known = byCatalog.get(ctx.catalog) ?? stepsOf(ctx.catalog);
  byCatalog.set(ctx.catalog, known);
  return (known.get(entity) ?? []).filter(
    (s) =>
      mayJoin(s.from, s.fromColumns, ctx) &&
      mayJoin(s.to, s.toColumns, ctx) &&
      (s.bridge === null || ctx.access.relations.has(s.bridge)),
  );
}

function mayJoin(entity: string, columns: readonly string[], ctx: BindContext): boolean {
  const relation = ctx.catalog.relations.get(entity);
  const access = ctx.access.relations.get(entity);
  if (relation === undefined || access === undefined) return false;
  const visible = columnsFor(relation, access);
  return columns.every((c) => visible.get(c)?.denied === false);
}

function stepsOf(catalog: Catalog): ReadonlyMap<string, readonly LinkStep[]> {
  const steps = new Map<string, LinkStep[]>();
  for (const edge of catalog.edges) {
    for (const step of [forward(edge, catalog), backward(edge, catalog)]) {
      const known = steps.get(step.from);
      if (known === undefined) steps.set(step.from, [step]);
      else known.push(step);
    }
  }
  return steps;
}

function forward(edge: Edge, catalog: Catalog): LinkStep {
  const { name, from, to, fromColumns, toColumns, bridge } = edge;
  const toOne = bridge === null && isKey(catalog.relations.get(to), toColumns);
  return Object.freeze({ edge: name, from, to, fromColumns, toColumns, bridge: bridge?.name ?? null, toOne });
}

function backward(edge: Edge, catalog: Catalog): LinkStep {
  const { name, from, to, fromColumns, toColumns, bridge } = edge;
  return Object.freeze({
    edge: name,
    from: to,
    to: from,
    fromColumns: toColumns,
    toColumns: fromColumns,
    bridge: bridge?.name ?? null,
    toOne: bridge === null && isKey(catalog.relations.get(from), fromColumns),
  });
}

/** True if `columns` include the primary key. */
function isKey(relation: Relation | undefined, columns: readonly string[]): boolean {
  const key = relation?.primaryKey ?? [];
  return key.length > 0 && key.every((k) => columns.includes(k));
}

/** Returns the shortest routes whose steps satisfy `may`: one, or the first two if there are several. */
function shortestRoutes(
  from: string,
  to: string,
  ctx: BindContext,
  may: (step: LinkStep) => boolean,
): readonly LinkRoute[] {
  let reached: readonly LinkRoute[] = [[]];
  const seen = new Set([from]);
  if (from === to) return reached;
  while (reached.length > 0) {
    const further = reached.flatMap((route) =>
      stepsFrom(route.at(-1)?.to ?? from, ctx)
        .filter((s) => may(s) && !seen.has(s.to))
        .map((s): LinkRoute => [...route, s]),
    );
    // Two routes to each entity suffice to find the first two to `to`; there may be millions.
    const counts = new Map<string, number>();
    reached = further.filter((route) => {
      const end = route.at(-1)?.to ?? from;
      const count = (counts.get(end) ?? 0) + 1;
      counts.set(end, count);
      return count <= 2;
    });
    if (counts.has(to)) return reached.filter((r) => r.at(-1)?.to === to);
    for (const end of counts.keys()) seen.add(end);
  }
  return [];
}
