import type { FuncCall } from '@pgsql/types';
import { type RelationAccess, type RelationGrant, showsRows } from '../../access/access.js';
import {
  type Column,
  type ConversionMetric,
  type CumulativeMetric,
  columnOf,
  type Metric,
  type Relation,
  unqualifiedName,
} from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { columnRef, isNotNull } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import { fanOutOf, mayBeMissing } from '../../plan/properties.js';
import { mapChildren } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import { nearestIdentifier } from '../../text/text.js';
import { constantText, type Location, nameParts, stringOf } from '../ast.js';
import { bindFilter, requireAggregates } from '../expressions/call.js';
import { expressionNode } from '../manifest/expression.js';
import {
  asDeclared,
  type BindEnvironment,
  innerScope,
  lookUp,
  mayReferTo,
  referenceOf,
  resolveColumn,
  type ScopeItem,
} from '../scope.js';
import { filterAggregates, isPresent, overPresent } from './aggregates.js';
import { aggregating, isDenied, isReadable, readableMetrics } from './metric-access.js';
import {
  aggregateOverItem,
  baseEvents,
  conversionTable,
  type LeafMetric,
  leafUses,
  metricAndInputs,
  metricNamed,
  metricValue,
  type ValueOfLeaf,
} from './metric-value.js';

/** Binds `MEASURE(metric) [FILTER (WHERE …)]` to the metric's aggregate over entities in FROM. */
export function bindMeasure(node: FuncCall, env: BindEnvironment): Expr {
  if (env.withinMetric === true) {
    const hint = 'make a derived metric of them';
    throw env.ctx.unsupported('MEASURE inside of a metric', node.location, hint);
  }
  refuseOddities(node, env);
  return bindMeasured(metricName(node, env), node, env);
}

/**
 * Treats `SUM(metric)` and the metric's own aggregate as MEASURE, because BI tools wrap columns in aggregates. Columns
 * take precedence over metrics. Returns null if the argument is not a metric of this query.
 *
 * @throws QueryError E0511 for any other aggregate over a metric
 */
export function bindMetricAggregate(name: string, node: FuncCall, env: BindEnvironment): Expr | null {
  const metric = metricArgument(node, env);
  if (metric === null) return null;
  if (isOwnAggregate(name, node, metric)) {
    refuseOddities({ ...node, agg_distinct: false }, env);
    return bindMeasured(metric.name, node, env);
  }
  const hint = `the metric says itself how it is aggregated: MEASURE(${identifier(metric.name)})`;
  throw env.ctx.unsupported(`\`${name}\` over metric \`${metric.name}\``, node.location, hint);
}

function metricArgument(node: FuncCall, env: BindEnvironment): Metric | null {
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
  const named: BindEnvironment = {
    ...env,
    scope: { ...scope, items: scope.items.filter((i) => mayReferTo(i, reference)) },
  };
  return isInFrom(metric, named) && isReadable(metric, ctx) ? metric : null;
}

function isOwnAggregate(name: string, node: FuncCall, metric: Metric): boolean {
  const distinct = node.agg_distinct === true;
  if (name === 'sum' && !distinct) return true;
  const own = metric.type === 'simple' ? expressionNode(metric.expression) : null;
  if (own === null || !('FuncCall' in own)) return false;
  const { funcname, agg_distinct } = own.FuncCall;
  return nameParts(funcname).join('.') === name && (agg_distinct === true) === distinct;
}

function bindMeasured(name: string, node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  requireAggregates('a metric', node.location, env);
  const metric = ctx.catalog.metrics.get(name);
  if (metric === undefined || !isReadable(metric, ctx)) {
    if (metric !== undefined && isDenied(metric, ctx))
      throw ctx.error('denied', { object: name }, node.location);
    throw unknownMetric(name, node, env);
  }
  for (const leaf of leafUses(metric, ctx.catalog)) refuseMisplaced(metric, leaf.metric, env, node.location);
  ctx.countValues(node.location, METRIC_NODES);
  const filter = bindFilter(node, env);
  const asked = { metric: metric.name, location: node.location };
  const leafValue: ValueOfLeaf = (leaf, filters) => overFrom(leaf, filters, filter, asked, env);
  const value = ctx.withoutPositions(() => metricValue(metric, leafValue, env));
  for (const name of metricAndInputs(metric, ctx.catalog)) ctx.recordMetric(name);
  const figure = filter === null ? value : ofCaller(filterAggregates(value, filter));
  return ctx.withFormat(ctx.at(figure, node.location), metric.format);
}

/** Number of values that one metric counts as, toward the statement's limit: several passes rewrite it. */
const METRIC_NODES = 20;

/** Removes the metric's name from aggregates with the caller's FILTER, which grants for the metric do not cover. */
function ofCaller(expr: Expr): Expr {
  const below = mapChildren(expr, ofCaller, (q) => q);
  return below.kind === 'aggregate' ? Object.freeze({ ...below, metric: null }) : below;
}

/** True if FROM contains an entity of the metric. */
function isInFrom(metric: Metric, env: BindEnvironment): boolean {
  return leafUses(metric, env.ctx.catalog).some((leaf) => itemOf(leaf.metric, env) !== undefined);
}

function itemOf(leaf: LeafMetric, env: BindEnvironment): ScopeItem | undefined {
  const item = env.scope.items.find((i) => i.relation?.name === leaf.entity);
  return item === undefined ? undefined : asDeclared(item);
}

/** Refuses a metric whose value would be wrong because FROM lacks rows that it needs, or repeats them. */
function refuseMisplaced(metric: Metric, leaf: LeafMetric, env: BindEnvironment, location: Location): void {
  const fault = misplacement(metric, leaf, env);
  if (fault === null) return;
  const detail = `metric \`${metric.name}\` ${fault.detail}`;
  throw env.ctx.unresolvable(detail, location, fault.hint);
}

function misplacement(
  metric: Metric,
  leaf: LeafMetric,
  env: BindEnvironment,
): { detail: string; hint: string } | null {
  const body = 'ask with a metrics body';
  const item = itemOf(leaf, env);
  if (item === undefined) {
    const ofOne = leafUses(metric, env.ctx.catalog).every((use) => use.metric.entity === leaf.entity);
    const hint = ofOne ? `read it FROM ${identifier(leaf.entity)}, or ${body}` : body;
    return { detail: `takes rows of \`${leaf.entity}\`, which FROM lacks`, hint };
  }
  const { from, metricRows } = env.scope;
  const fan = from === undefined ? null : fanOutOf(from, item.source);
  if (fan === null || (metricRows !== undefined && rowKey(item, env) !== null)) return null;
  const detail = `would count rows of \`${fan.of}\` several times: one of them has several of \`${fan.by}\``;
  return { detail, hint: `${body}, or group the metric in a derived table first, then join` };
}

/** Returns the primary key of `item`; null if there is none or part of it is masked for this caller. */
function rowKey({ source, relation }: ScopeItem, { ctx }: BindEnvironment): readonly Expr[] | null {
  const access = relation === null ? undefined : ctx.access.relations.get(relation.name);
  if (relation === null || access === undefined || relation.primaryKey.length === 0) return null;
  const clear = relation.primaryKey.flatMap((name) => clearColumn(relation, name, access) ?? []);
  return clear.length < relation.primaryKey.length
    ? null
    : clear.map((c) => columnRef(source, c.name, c.type));
}

/** Returns column `name` if the caller sees it unmasked in every row. Grants that only allow groups show no rows. */
function clearColumn(relation: Relation, name: string, access: RelationAccess): Column | null {
  const column = columnOf(relation, name);
  if (column === null || access.denied.has(name)) return null;
  const label = column.sensitivity;
  const isShown = (g: RelationGrant): boolean =>
    g.columns.has(name) && (label === null || g.unmask.has(label));
  const showing = access.grants.filter(showsRows);
  return showing.length > 0 && showing.every(isShown) ? column : null;
}

interface MetricReference {
  readonly metric: string;
  readonly location: Location;
}

function overFrom(
  leaf: LeafMetric,
  filters: readonly string[],
  filter: Expr | null,
  asked: MetricReference,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const { from, metricRows } = env.scope;
  const item = itemOf(leaf, env);
  if (item === undefined) throw new InternalError(`metric ${leaf.name} cannot be computed here`);
  if (leaf.type === 'cumulative') return overOtherPeriods(leaf, filters, filter, item, asked, env);
  if (leaf.type === 'conversion') return overLaterEvents(leaf, filters, filter, item, asked, env);
  const value = aggregateOverItem(leaf, filters, item, env);
  if (from === undefined || metricRows === undefined) return value;
  const key = rowKey(item, env);
  if (fanOutOf(from, item.source) !== null && key !== null) {
    for (const k of key) if (k.kind === 'column') ctx.use(k.source, k.name);
    return filterAggregates(value, metricRows.countOnce(item, key, filter, from, asked, ctx));
  }
  if (!mayBeMissing(from, item.source)) return value;
  const present = isPresent(from, item.source);
  if (present !== null) return overPresent(value, [present]);
  if (key === null) {
    const detail = `metric \`${asked.metric}\` would count rows of \`${leaf.entity}\` that a join does not find`;
    throw ctx.unresolvable(detail, asked.location, 'ask with a metrics body');
  }
  for (const k of key) if (k.kind === 'column') ctx.use(k.source, k.name);
  return overPresent(value, key.map(isNotNull));
}

/** Binds a cumulative metric, or a metric of an earlier period, as its base metric over rows of other periods. */
function overOtherPeriods(
  leaf: CumulativeMetric,
  filters: readonly string[],
  filter: Expr | null,
  item: ScopeItem,
  asked: MetricReference,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const name = item.relation?.timeDimension ?? '';
  const { ref } = resolveColumn(innerScope(null, [item], new Map()), [name], ctx, undefined);
  const base = metricNamed(leaf.metric, ctx.catalog);
  const value = metricValue(base, (l, all) => overFrom(l, all, filter, asked, env), env, filters);
  const spanned = { item, time: ref, span: leaf.span, metric: leaf.name, location: asked.location };
  const taken = env.scope.metricRows?.overPeriods(spanned, ctx);
  if (taken === undefined) throw new InternalError(`metric ${leaf.name} cannot be computed here`);
  return filterAggregates(value, taken);
}

function overLaterEvents(
  leaf: ConversionMetric,
  filters: readonly string[],
  filter: Expr | null,
  item: ScopeItem,
  asked: MetricReference,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const name = JSON.stringify([
    item.source,
    leaf.name,
    filters,
    filter === null ? null : fingerprint(filter),
  ]);
  const found = env.scope.metricRows?.overConversions(
    name,
    () => ({
      item,
      conversion: leaf,
      events: baseEvents(leaf, filters, item, env),
      later: conversionTable(leaf, (later) => aggregating([later], ctx), ctx),
      filter,
      metric: leaf.name,
      location: asked.location,
    }),
    ctx,
  );
  if (found === undefined) throw new InternalError(`metric ${leaf.name} cannot be computed here`);
  return found;
}

function unknownMetric(name: string, node: FuncCall, env: BindEnvironment) {
  const visible = readableMetrics(env.ctx).filter((m) => isInFrom(m, env));
  const near = nearestIdentifier(
    name,
    visible.map((m) => m.name),
  );
  return env.ctx.error('unknownMetric', { metric: name, near }, node.location);
}

function metricName(node: FuncCall, env: BindEnvironment): string {
  const arg = node.args?.[0];
  if (arg !== undefined && node.args?.length === 1) {
    const written =
      'ColumnRef' in arg ? (arg.ColumnRef.fields ?? []).map(stringOf).join('.') : constantText(arg);
    const name = written === null ? null : unqualifiedName('metrics', written);
    if (name !== null && !name.includes('.')) return name;
  }
  const detail = `${nameParts(node.funcname).join('.').toUpperCase()} takes the name of one metric`;
  throw env.ctx.mismatch(detail, node.location, 'MEASURE(package_count)');
}

function refuseOddities(node: FuncCall, env: BindEnvironment): void {
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
