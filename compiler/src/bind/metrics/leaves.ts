import type { Catalog, Metric } from '../../catalog/catalog.js';
import { nearest } from '../../text/text.js';
import type { BindContext } from '../context.js';
import { leafUses } from './inputs.js';
import { isDenied, isReadable, readableMetrics } from './readable.js';
import type { LeafMetric } from './value.js';

/** A leaf under its filters: one figure that the database computes. */
export interface Leaf {
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
export function leavesOf(metrics: readonly Metric[], catalog: Catalog): readonly Leaf[] {
  const leaves = new Map<string, Leaf>();
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
