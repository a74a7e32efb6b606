import type { Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import type { Expr, FromItem, Operation } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { columnValue } from '../expressions/expression.js';
import { columnsOf, joinParents } from '../manifest/computed.js';
import { innerScope, resolveColumn, type ScopeItem } from '../scope.js';
import { operation } from './build.js';
import type { DimensionLink } from './names.js';
import { type LinkRoute, type LinkStep, shortestRoutes, stepsFrom } from './routes.js';

/**
 * Rows of one entity with linked entities joined. Only to-one links are allowed, as LEFT JOINs, so each row of the
 * entity occurs exactly once.
 */
export class EntityRows {
  readonly root: ScopeItem;
  readonly #ctx: BindContext;
  readonly #joined = new Map<string, ScopeItem>();
  #item: FromItem;

  /** @throws QueryError E0512 if the caller may not see the entity */
  constructor(entity: string, ctx: BindContext) {
    this.#ctx = ctx;
    const { item, scope } = scanOf(entity, ctx);
    this.root = scope;
    this.#item = item;
  }

  get from(): FromItem {
    return joinParents(this.#item, [this.root, ...this.#joined.values()]) ?? this.#item;
  }

  /**
   * A column of the entity at the end of `links`.
   *
   * @param metric requested metric, for messages
   * @throws QueryError E1001, E2101
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
    const { item, scope } = scanOf(last.to, this.#ctx);
    const on = Object.freeze(last.fromColumns.map((_, i) => this.#equality(before, scope, last, i)));
    this.#item = Object.freeze({
      kind: 'join',
      sealed: true,
      made: true,
      type: 'left',
      left: this.#item,
      right: item,
      on,
    });
    this.#joined.set(key, scope);
    return scope;
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

function scanOf(entity: string, ctx: BindContext): { readonly item: FromItem; readonly scope: ScopeItem } {
  const relation: Relation | undefined = ctx.catalog.relations.get(entity);
  const access = ctx.access.relations.get(entity);
  if (relation === undefined || access === undefined)
    throw ctx.error('unknownRelation', { relation: entity, near: null }, undefined);
  const source = ctx.nextSource();
  return {
    item: Object.freeze({ kind: 'entity', id: source, relation, columns: Object.freeze([]) }),
    scope: { source, alias: entity, columns: columnsOf(relation, access, ctx), relation, parents: [] },
  };
}

export function columnOf(item: ScopeItem, name: string, ctx: BindContext): Expr {
  const found = resolveColumn(innerScope(null, [item], new Map()), [name], ctx, undefined);
  return columnValue(found, ctx, undefined);
}

/** The unique shortest to-one route. @throws QueryError E1001 that names the offending link */
function routeTo(to: string, from: string, metric: string, ctx: BindContext): LinkRoute {
  const [route, another] = shortestRoutes(from, to, ctx, (s) => s.toOne);
  if (route !== undefined && another === undefined) return route;
  const lead = `metric \`${metric}\` takes rows of \`${from}\``;
  const unresolvable = (detail: string, hint: string | null) =>
    ctx.error('unresolvable', { detail: `${lead}, ${detail}`, hint }, undefined);
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
