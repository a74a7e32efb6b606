import type { ConversionMetric, SimpleMetric } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import type { BindContext } from '../context.js';
import type { BindEnvironment, ScopeItem } from '../scope.js';
import { deferAggregates } from './aggregates.js';
import { call, materialized, rowNumber, unnamedOutputs } from './build.js';
import type { ConversionEvents, Events } from './conversion-rows.js';
import { columnOf, EntityRows } from './entity-rows.js';
import { aggregateOverItem, conditionsOverItem, metricNamed } from './metric-value.js';
import { inUtc } from './time.js';

/** Returns the base events of `metric` as rows of `item`. @param filters additional predicates */
export function baseEvents(
  metric: ConversionMetric,
  filters: readonly string[],
  item: ScopeItem,
  env: BindEnvironment,
): Events {
  const names = metric.same.map((s) => s.base);
  return eventsOf(simpleNamed(metric.base, env.ctx), names, filters, item, env);
}

export function conversionEvents(metric: ConversionMetric, item: ScopeItem, env: BindEnvironment): Events {
  const names = metric.same.map((s) => s.conversion);
  return eventsOf(simpleNamed(metric.conversion, env.ctx), names, [], item, env);
}

function eventsOf(
  metric: SimpleMetric,
  names: readonly string[],
  filters: readonly string[],
  item: ScopeItem,
  env: BindEnvironment,
): Events {
  const { ctx } = env;
  const time = columnOf(item, item.relation?.timeDimension ?? '', ctx);
  return {
    same: names.map((name) => columnOf(item, name, ctx)),
    at: inUtc(time, ctx),
    where: conditionsOverItem(metric, filters, item, env),
  };
}

/** Returns the metric's aggregate over rows of `item`, all of which are conversion events. */
export function conversionAggregate(metric: ConversionMetric, item: ScopeItem, env: BindEnvironment): Expr {
  return aggregateOverItem({ ...simpleNamed(metric.conversion, env.ctx), filter: null }, [], item, env);
}

function simpleNamed(name: string, { catalog }: BindContext): SimpleMetric {
  const metric = metricNamed(name, catalog);
  if (metric.type !== 'simple') throw new InternalError(`metric ${name} is not a simple one`);
  return metric;
}

/** @param environment creates the environment for aggregates over an item */
export function conversionTable(
  metric: ConversionMetric,
  environment: (item: ScopeItem) => BindEnvironment,
  ctx: BindContext,
): ConversionEvents {
  const source = new EntityRows(metric.conversionEntity, ctx);
  const env = environment(source.root);
  const deferred = deferAggregates(conversionAggregate(metric, source.root, env), ctx, false);
  const { same, at, where } = conversionEvents(metric, source.root, env);
  const outputs = unnamedOutputs([...same, at, rowNumber([], []), ...deferred.inputs]);
  const conditions = Object.freeze([call('isfinite', [at], ctx), ...where]);
  const query = selectOf({ from: source.from, where: conditions, outputs });
  return { table: materialized(query, ctx), deferred };
}
