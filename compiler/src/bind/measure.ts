import type { FuncCall } from '@pgsql/types';
import type { Metric } from '../catalog.js';
import { InternalError } from '../errors.js';
import { plainName } from '../full-name.js';
import type { Expr } from '../plan.js';
import { nearest } from '../text.js';
import { mapChildren } from '../walk.js';
import { constantText, type Location, nameParts, stringOf } from './ast.js';
import { aggregateHint } from './call.js';
import { type Environment, insideCall } from './environment.js';
import { bindPredicateNode } from './expression.js';
import { fanOutOf } from './fan-out.js';
import { leafUses, metricAndInputs } from './metrics/inputs.js';
import { isDenied, isReadable, readableMetrics } from './metrics/readable.js';
import {
  aggregateOverItem,
  filterAggregates,
  type LeafMetric,
  metricValue,
  parsedOnce,
} from './metrics/value.js';
import { isMeant, lookUp, referenceOf, type ScopeItem } from './scope.js';

/** `MEASURE(metric) [FILTER (WHERE …)]`: the metric's own aggregate over the entities that the query names. */
export function bindMeasure(node: FuncCall, env: Environment): Expr {
  if (env.withinMetric === true) {
    const hint = 'make a derived metric of them';
    throw env.ctx.unsupported('MEASURE inside of a metric', node.location, hint);
  }
  refuseOddities(node, env);
  return bindMeasured(metricName(node, env), node, env);
}

/**
 * `SUM(metric)` and the metric's own aggregate mean MEASURE: BI tools put an aggregate around what they take for a
 * column. Null where the argument is no metric of this query; a column of that name comes first.
 *
 * @throws QueryError E0511 for another aggregate over a metric
 */
export function bindMetricAggregate(name: string, node: FuncCall, env: Environment): Expr | null {
  const metric = metricArgument(node, env);
  if (metric === null) return null;
  if (isOwnAggregate(name, node, metric)) {
    refuseOddities({ ...node, agg_distinct: false }, env);
    return bindMeasured(metric.name, node, env);
  }
  const hint = `the metric says itself how it is aggregated: MEASURE(${metric.name})`;
  throw env.ctx.unsupported(`\`${name}\` over metric \`${metric.name}\``, node.location, hint);
}

function metricArgument(node: FuncCall, env: Environment): Metric | null {
  const { ctx, scope } = env;
  const arg = node.args?.[0];
  if (
    env.withinMetric === true ||
    ctx.world === 'physical' ||
    ctx.catalog.metrics.size === 0 ||
    arg === undefined ||
    node.args?.length !== 1
  )
    return null;
  if (!('ColumnRef' in arg)) return null;
  const parts = (arg.ColumnRef.fields ?? []).map(stringOf);
  const reference = referenceOf(parts, ctx.world);
  const metric = ctx.catalog.metrics.get(parts.at(-1) ?? '');
  if (reference === null || metric === undefined) return null;
  if (lookUp(scope, reference, ctx, arg.ColumnRef.location) !== null) return null;
  const named: Environment = {
    ...env,
    scope: { ...scope, items: scope.items.filter((i) => isMeant(i, reference)) },
  };
  return isInFrom(metric, named) && isReadable(metric, ctx) ? metric : null;
}

function isOwnAggregate(name: string, node: FuncCall, metric: Metric): boolean {
  const distinct = node.agg_distinct === true;
  if (name === 'sum' && !distinct) return true;
  const own = metric.type === 'simple' ? parsedOnce(metric.expression) : null;
  if (own === null || !('FuncCall' in own)) return false;
  const { funcname, agg_distinct } = own.FuncCall;
  return nameParts(funcname).join('.') === name && (agg_distinct === true) === distinct;
}

function bindMeasured(name: string, node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  if (!env.aggregates)
    throw ctx.error(
      'grouping',
      { detail: `a metric is not allowed in ${env.clause}`, hint: aggregateHint(env.clause) },
      node.location,
    );
  const metric = ctx.catalog.metrics.get(name);
  if (metric === undefined || !isInFrom(metric, env) || !isReadable(metric, ctx)) {
    if (metric !== undefined && isDenied(metric, ctx))
      throw ctx.error('denied', { object: name }, node.location);
    throw unknownMetric(name, node, env);
  }
  for (const leaf of leafUses(metric, ctx.catalog)) refuseMisplaced(metric, leaf.metric, env, node.location);
  ctx.spend(node.location, METRIC_NODES);
  const value = ctx.unplaced(() => metricValue(metric, (leaf, filters) => overFrom(leaf, filters, env), env));
  for (const name of metricAndInputs(metric, ctx.catalog)) ctx.measures(name);
  if (node.agg_filter === undefined) return ctx.at(value, node.location);
  const filter = bindPredicateNode(node.agg_filter, insideCall(env, 'FILTER', false));
  return ctx.at(ofCaller(filterAggregates(value, filter)), node.location);
}

/** What a metric counts for, beside the values that it is written out to: it is looked at from many sides. */
const METRIC_NODES = 20;

/** A metric that the caller has filtered is the metric no more: a grant of it does not reach so far. */
function ofCaller(expr: Expr): Expr {
  const below = mapChildren(expr, ofCaller, (q) => q);
  return below.kind === 'aggregate' ? Object.freeze({ ...below, metric: null }) : below;
}

/** Whether the query names an entity whose rows the metric takes: elsewhere it is as unknown as any other name. */
function isInFrom(metric: Metric, env: Environment): boolean {
  return leafUses(metric, env.ctx.catalog).some((leaf) => itemOf(leaf.metric, env) !== undefined);
}

function itemOf(leaf: LeafMetric, env: Environment): ScopeItem | undefined {
  return env.scope.items.find((i) => i.relation?.name === leaf.entity);
}

/** A metric is never a wrong number: where FROM lacks rows that it takes, or repeats them, it has no answer. */
function refuseMisplaced(metric: Metric, leaf: LeafMetric, env: Environment, location: Location): void {
  const fault = misplacement(leaf, env);
  if (fault === null) return;
  const detail = `metric \`${metric.name}\` ${fault.detail}`;
  throw env.ctx.error('unresolvable', { detail, hint: fault.hint }, location);
}

function misplacement(leaf: LeafMetric, env: Environment): { detail: string; hint: string } | null {
  const body = 'ask with a metrics body';
  if (leaf.type === 'cumulative')
    return { detail: 'is cumulative, which needs a row for every period', hint: body };
  const item = itemOf(leaf, env);
  if (item === undefined)
    return { detail: `also takes rows of \`${leaf.entity}\`, which FROM lacks`, hint: body };
  const { from } = env.scope;
  const fan = from === undefined ? null : fanOutOf(from, item.source);
  if (fan === null) return null;
  return {
    detail: `would count rows of \`${fan.of}\` several times: one of them has several of \`${fan.by}\``,
    hint: 'group the metric in a derived table first, then join',
  };
}

function overFrom(leaf: LeafMetric, filters: readonly string[], env: Environment): Expr {
  const item = itemOf(leaf, env);
  if (leaf.type === 'cumulative' || item === undefined)
    throw new InternalError(`metric ${leaf.name} cannot be computed here`);
  return aggregateOverItem(leaf, filters, item, env);
}

function unknownMetric(name: string, node: FuncCall, env: Environment) {
  const visible = readableMetrics(env.ctx).filter((m) => isInFrom(m, env));
  const near = nearest(
    name,
    visible.map((m) => m.name),
  );
  return env.ctx.error('unknownMetric', { metric: name, near }, node.location);
}

function metricName(node: FuncCall, env: Environment): string {
  const arg = node.args?.[0];
  if (arg !== undefined && node.args?.length === 1) {
    const written =
      'ColumnRef' in arg ? (arg.ColumnRef.fields ?? []).map(stringOf).join('.') : constantText(arg);
    const name = written === null ? null : plainName('metrics', written);
    if (name !== null && !name.includes('.')) return name;
  }
  const detail = `${nameParts(node.funcname).join('.').toUpperCase()} takes the name of one metric`;
  throw env.ctx.mismatch(detail, node.location, 'MEASURE(package_count)');
}

function refuseOddities(node: FuncCall, env: Environment): void {
  const oddity =
    node.over !== undefined
      ? 'OVER'
      : node.agg_distinct === true
        ? 'DISTINCT'
        : node.agg_order !== undefined
          ? 'ORDER BY'
          : null;
  if (oddity === null) return;
  const hint = 'put the metric in a derived table first';
  throw env.ctx.unsupported(`${oddity} with a metric`, node.location, hint);
}
