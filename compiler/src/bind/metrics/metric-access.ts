import type { Access } from '../../access/access.js';
import type { Catalog, ConversionMetric, Metric } from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import { QueryError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { nearest } from '../../text/text.js';
import type { TypeName } from '../../types/types.js';
import { BindContext } from '../context.js';
import { scanEntity } from '../manifest/computed.js';
import {
  type BindEnvironment,
  innerScope,
  plainEnvironment,
  resolveColumn,
  type ScopeItem,
} from '../scope.js';
import { equality } from './conversion-rows.js';
import {
  aggregateOverItem,
  baseEvents,
  conversionAggregate,
  conversionEvents,
  type LeafMetric,
  leafUses,
  metricNamed,
  metricValue,
} from './metric-value.js';

const known = new WeakMap<Access, WeakMap<Metric, boolean>>();

/** True if the caller may read all columns that `metric` uses. Otherwise the metric is treated as nonexistent. */
export function isReadable(metric: Metric, ctx: BindContext): boolean {
  const ofCaller = known.get(ctx.access) ?? new WeakMap<Metric, boolean>();
  known.set(ctx.access, ofCaller);
  const readable = ofCaller.get(metric) ?? metricFault(metric, [], ctx.catalog, ctx.access) === null;
  ofCaller.set(metric, readable);
  return readable;
}

/** True if `metric` is unreadable only because a rule denies an entire entity. */
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
 * Returns the error that computing `metric` with `filters` raises for a caller with `access`; null if it succeeds.
 *
 * @param filters additional predicates over the metric's rows
 */
export function metricFault(
  metric: Metric,
  filters: readonly string[],
  catalog: Catalog,
  access: Access,
): QueryError | null {
  try {
    tryMetric(metric, filters, scratchContext(catalog, access));
    return null;
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

/** Creates a separate context, so that a trial binding records nothing in the statement. */
function scratchContext(catalog: Catalog, access: Access): BindContext {
  return new BindContext({ original: '', quoted: [] }, catalog, access, NO_FEATURES, []);
}

function tryMetric(metric: Metric, filters: readonly string[], ctx: BindContext): Expr {
  const value = (m: Metric, more: readonly string[]): Expr =>
    metricValue(
      m,
      (leaf, all) => {
        const { item } = scanEntity(leaf.entity, ctx);
        if (leaf.type === 'simple') return aggregateOverItem(leaf, all, item, aggregating([item], ctx));
        if (leaf.type === 'conversion')
          return tryConversion(leaf, all, item, scanEntity(leaf.conversionEntity, ctx).item, ctx);
        const time = [item.relation?.timeDimension ?? ''];
        resolveColumn(innerScope(null, [item], new Map()), time, ctx, undefined);
        return value(metricNamed(leaf.metric, ctx.catalog), all);
      },
      aggregating([], ctx),
      more,
    );
  return ctx.withoutPositions(() => value(metric, filters));
}

function tryConversion(
  metric: ConversionMetric,
  filters: readonly string[],
  base: ScopeItem,
  later: ScopeItem,
  ctx: BindContext,
): Expr {
  const env = aggregating([later], ctx);
  const first = baseEvents(metric, filters, base, aggregating([base], ctx));
  const second = conversionEvents(metric, later, env);
  for (const [i, column] of first.same.entries()) equality(column, second.same[i] ?? column, ctx);
  return conversionAggregate(metric, later, env);
}

function entitiesOf(leaf: LeafMetric): readonly string[] {
  return leaf.type === 'conversion' ? [leaf.entity, leaf.conversionEntity] : [leaf.entity];
}

/** True if, for each entity that `metric` uses, some grant allows all metrics or names the leaf metric. */
function isGranted(metric: Metric, catalog: Catalog, access: Access): boolean {
  return leafUses(metric, catalog).every(({ metric: leaf }) =>
    entitiesOf(leaf).every((entity) =>
      access.relations
        .get(entity)
        ?.grants.some(({ groups }) => (groups?.metrics ?? null) === null || groups?.metrics?.has(leaf.name)),
    ),
  );
}

/** Returns the type of the metric; null if `access` hides one of its columns or only allows other metrics. */
export function metricType(metric: Metric, catalog: Catalog, access: Access): TypeName | null {
  if (!isGranted(metric, catalog, access)) return null;
  const fault = metricFault(metric, [], catalog, access);
  return fault === null ? tryMetric(metric, [], scratchContext(catalog, access)).type : null;
}

export function readableMetrics(ctx: BindContext): readonly Metric[] {
  return [...ctx.catalog.metrics.values()].filter((m) => isReadable(m, ctx));
}

export function aggregating(items: readonly ScopeItem[], ctx: BindContext): BindEnvironment {
  const scope = innerScope(null, items, new Map());
  return { ...plainEnvironment(ctx, scope, 'a metric'), aggregates: true };
}

/** A leaf metric (simple, cumulative or conversion) with its filters: one value computed by the database. */
export interface LeafFigure {
  readonly key: string;
  readonly metric: LeafMetric;
  readonly filters: readonly string[];
  /** Name of the requested metric, for messages. */
  readonly asked: string;
}

export function leafKey(metric: string, filters: readonly string[]): string {
  return JSON.stringify([metric, ...filters]);
}

export function leafFigures(metrics: readonly Metric[], catalog: Catalog): readonly LeafFigure[] {
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

/** Resolves a metric name, case-insensitively. @throws QueryError E0512, E2101 */
export function resolveMetric(name: string, ctx: BindContext): Metric {
  const { catalog } = ctx;
  const known =
    byCatalog.get(catalog) ?? new Map([...catalog.metrics.values()].map((m) => [m.name.toLowerCase(), m]));
  byCatalog.set(catalog, known);
  const metric = known.get(name.toLowerCase());
  // Checked before anything else: any other error would reveal that the metric exists.
  if (metric === undefined || !isReadable(metric, ctx)) {
    if (metric !== undefined && isDenied(metric, ctx))
      throw ctx.error('denied', { object: metric.name }, undefined);
    throw unknownMetric(name, ctx);
  }
  return metric;
}

/** Returns the error for a metric that is unknown or that the caller may not read. */
export function unknownMetric(name: string, ctx: BindContext) {
  const known = readableMetrics(ctx).map((m) => m.name);
  return ctx.error('unknownMetric', { metric: name, near: nearest(name, known) }, undefined);
}
