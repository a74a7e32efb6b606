import type { Access } from '../../access/access.js';
import type { Catalog, ConversionMetric, Metric } from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import { QueryError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { nearest } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { BindContext } from '../context.js';
import type { BindEnvironment } from '../environment.js';
import { columnsOf } from '../manifest/computed.js';
import { innerScope, resolveColumn, type ScopeItem } from '../scope.js';
import { equality } from './attributed.js';
import { baseEvents, laterEvents, laterValue } from './converted.js';
import { leafUses } from './inputs.js';
import { aggregateOverItem, type LeafMetric, metricNamed, metricValue } from './value.js';

const known = new WeakMap<Access, WeakMap<Metric, boolean>>();

/** True if the caller may read every column that `metric` is computed from. For any other caller it does not exist. */
export function isReadable(metric: Metric, ctx: BindContext): boolean {
  const ofCaller = known.get(ctx.access) ?? new WeakMap<Metric, boolean>();
  known.set(ctx.access, ofCaller);
  const readable = ofCaller.get(metric) ?? metricFault(metric, [], ctx.catalog, ctx.access) === null;
  ofCaller.set(metric, readable);
  return readable;
}

/** True if only a rule that denies a whole entity keeps the caller from reading `metric`. */
export function isDenied(metric: Metric, ctx: BindContext): boolean {
  const { catalog, access } = ctx;
  const entities = leafUses(metric, catalog).flatMap((leaf) => entitiesOf(leaf.metric));
  if (!entities.some((e) => access.denied?.has(e))) return false;
  const granted = entities.flatMap((name) => {
    const found = access.relations.get(name) ?? access.denied?.get(name);
    return found === undefined ? [] : [[name, { ...found, denied: new Set<string>() }] as const];
  });
  return metricFault(metric, [], catalog, { ...access, relations: new Map(granted) }) === null;
}

/**
 * The fault of `metric` under `filters` for a caller with `access`; null if it can be computed.
 *
 * @param filters further predicates over the rows that it takes
 */
export function metricFault(
  metric: Metric,
  filters: readonly string[],
  catalog: Catalog,
  access: Access,
): QueryError | null {
  try {
    tryMetric(metric, filters, trialOf(catalog, access));
    return null;
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

/** A context of its own: what is tried in it leaves nothing in any statement. */
function trialOf(catalog: Catalog, access: Access): BindContext {
  return new BindContext({ original: '', quoted: [] }, catalog, access, NO_FEATURES, []);
}

function tryMetric(metric: Metric, filters: readonly string[], ctx: BindContext): Expr {
  const value = (m: Metric, more: readonly string[]): Expr =>
    metricValue(
      m,
      (leaf, all) => {
        const item = scanOf(leaf.entity, ctx);
        if (leaf.type === 'simple') return aggregateOverItem(leaf, all, item, aggregating([item], ctx));
        if (leaf.type === 'conversion')
          return triedConversion(leaf, all, item, scanOf(leaf.conversionEntity, ctx), ctx);
        const time = [item.relation?.timeDimension ?? ''];
        resolveColumn(innerScope(null, [item], new Map()), time, ctx, undefined);
        return value(metricNamed(leaf.metric, ctx.catalog), all);
      },
      aggregating([], ctx),
      more,
    );
  return ctx.unplaced(() => value(metric, filters));
}

function triedConversion(
  metric: ConversionMetric,
  filters: readonly string[],
  base: ScopeItem,
  later: ScopeItem,
  ctx: BindContext,
): Expr {
  const env = aggregating([later], ctx);
  const first = baseEvents(metric, filters, base, aggregating([base], ctx));
  const second = laterEvents(metric, later, env);
  for (const [i, column] of first.same.entries()) equality(column, second.same[i] ?? column, ctx);
  return laterValue(metric, later, env);
}

/** The entities whose rows `leaf` takes. */
function entitiesOf(leaf: LeafMetric): readonly string[] {
  return leaf.type === 'conversion' ? [leaf.entity, leaf.conversionEntity] : [leaf.entity];
}

/** The type of the metric's value; null for somebody with `access` who may not read all of it. */
export function metricType(metric: Metric, catalog: Catalog, access: Access): TypeName | null {
  const fault = metricFault(metric, [], catalog, access);
  return fault === null ? tryMetric(metric, [], trialOf(catalog, access)).type : null;
}

/** The metrics that exist for this caller. */
export function readableMetrics(ctx: BindContext): readonly Metric[] {
  return [...ctx.catalog.metrics.values()].filter((m) => isReadable(m, ctx));
}

/** A FROM item that reads `entity` alone. @throws QueryError E0512 where the caller does not know it */
function scanOf(entity: string, ctx: BindContext): ScopeItem {
  const relation = ctx.catalog.relations.get(entity);
  const access = ctx.access.relations.get(entity);
  if (relation === undefined || access === undefined)
    throw ctx.error('unknownRelation', { relation: entity, near: null }, undefined);
  return {
    source: ctx.nextSource(),
    alias: entity,
    columns: columnsOf(relation, access, ctx),
    relation,
    parents: [],
  };
}

/** Environment in which aggregates over `items` are bound. */
export function aggregating(items: readonly ScopeItem[], ctx: BindContext): BindEnvironment {
  return {
    ctx,
    scope: innerScope(null, items, new Map()),
    clause: 'a metric',
    aggregates: true,
    windows: false,
    namedWindows: new Map(),
    policy: false,
  };
}

/** A leaf under its filters: one figure that the database computes. */
export interface LeafFigure {
  /** Equal for the same figure. */
  readonly key: string;
  readonly metric: LeafMetric;
  readonly filters: readonly string[];
  /** The asked metric that it is for, for messages. */
  readonly asked: string;
}

export function leafKey(metric: string, filters: readonly string[]): string {
  return JSON.stringify([metric, ...filters]);
}

/** The figures that `metrics` are made of, each once. */
export function leavesOf(metrics: readonly Metric[], catalog: Catalog): readonly LeafFigure[] {
  const leaves = new Map<string, LeafFigure>();
  for (const asked of metrics) {
    for (const { metric, filters } of leafUses(asked, catalog)) {
      const key = leafKey(metric.name, filters);
      if (!leaves.has(key)) leaves.set(key, { key, metric, filters, asked: asked.name });
    }
  }
  return [...leaves.values()];
}

const byCatalog = new WeakMap<Catalog, ReadonlyMap<string, Metric>>();

/** The metric that `name` means, whatever its case. @throws QueryError E0512, E2101 */
export function metricCalled(name: string, ctx: BindContext): Metric {
  const { catalog } = ctx;
  const known =
    byCatalog.get(catalog) ?? new Map([...catalog.metrics.values()].map((m) => [m.name.toLowerCase(), m]));
  byCatalog.set(catalog, known);
  const metric = known.get(name.toLowerCase());
  // Before anything else is looked at: what else is wrong with the question would tell that there is such a metric.
  if (metric === undefined || !isReadable(metric, ctx)) {
    if (metric !== undefined && isDenied(metric, ctx))
      throw ctx.error('denied', { object: metric.name }, undefined);
    throw unknownMetric(name, ctx);
  }
  return metric;
}

/** The error for a name that is no metric: whether there is none, or the caller may not read it, it says the same. */
export function unknownMetric(name: string, ctx: BindContext) {
  const near = nearest(
    name,
    readableMetrics(ctx).map((m) => m.name),
  );
  return ctx.error('unknownMetric', { metric: name, near }, undefined);
}
