import type { Node } from '@pgsql/types';
import { forMetric } from '../../access/metric-access.js';
import type {
  Catalog,
  ConversionMetric,
  CumulativeMetric,
  Metric,
  SimpleMetric,
} from '../../catalog/catalog.js';
import { assertNever, InternalError, queryError } from '../../errors/errors.js';
import type { Aggregate, Expr } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { mapChildren, queryOf, someExpr } from '../../plan/walk.js';
import { stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindPredicateNode, bindValue, columnValue } from '../expressions/expression.js';
import { quotient } from '../expressions/operands.js';
import { columnsOf, parentColumn } from '../manifest/computed.js';
import { expressionNode, ofManifest } from '../manifest/expression.js';
import { type BindEnvironment, innerScope, resolveColumn, type ScopeItem } from '../scope.js';
import { deferAggregates, filterAggregates } from './aggregates.js';
import { call, materialized, rowNumber, unnamedOutputs } from './build.js';
import type { ConversionEvents, Events } from './conversion-rows.js';
import { columnOf, EntityRows } from './entity-rows.js';
import { inUtc } from './time.js';

export type LeafMetric = SimpleMetric | CumulativeMetric | ConversionMetric;

export type ValueOfLeaf = (metric: LeafMetric, filters: readonly string[]) => Expr;

/** Computes `metric` from leaf values. Errors have no position, as the texts belong to the manifest. */
export function metricValue(
  metric: Metric,
  leaf: ValueOfLeaf,
  env: BindEnvironment,
  filters: readonly string[] = [],
): Expr {
  switch (metric.type) {
    case 'simple':
    case 'cumulative':
      return leaf(metric, filters);
    case 'conversion': {
      const { ctx } = env;
      const conversions = leaf(metric, filters);
      if (metric.calculation === 'conversions') return conversions;
      const base = metricValue(metricNamed(metric.base, ctx.catalog), leaf, env, filters);
      return quotient(conversions, base, undefined, ctx);
    }
    case 'ratio': {
      const [above, below] = [metric.numerator, metric.denominator].map((input) =>
        metricValue(
          metricNamed(input.metric, env.ctx.catalog),
          leaf,
          env,
          input.filter === null ? filters : [...filters, input.filter],
        ),
      );
      if (above === undefined || below === undefined) throw queryError('internal', {});
      return quotient(above, below, undefined, env.ctx);
    }
    case 'derived':
      return bindDerived(metric.expression, leaf, env, filters);
    default:
      return assertNever(metric);
  }
}

/** Binds a derived metric: names refer to metrics, division by zero yields NULL, and aggregates are refused. */
function bindDerived(
  text: string,
  leaf: ValueOfLeaf,
  env: BindEnvironment,
  filters: readonly string[],
): Expr {
  const { ctx } = env;
  const inner: BindEnvironment = {
    ...env,
    scope: innerScope(null, [], new Map()),
    clause: 'a derived metric',
    aggregates: false,
    windows: false,
    guardedDivision: true,
    nameOf: (parts) => {
      const metric = parts.length === 1 ? ctx.catalog.metrics.get(parts[0] ?? '') : undefined;
      if (metric === undefined)
        throw ctx.error('unknownMetric', { metric: parts.join('.'), near: null }, undefined);
      return metricValue(metric, leaf, env, filters);
    },
  };
  const value = ctx.nested(() => bindValue(expressionNode(text), inner));
  if (someExpr(value, (e) => queryOf(e) !== null)) {
    throw ctx.unsupported('a subquery in a derived metric', undefined);
  }
  return ofManifest(value, ctx);
}

export function metricNamed(name: string, catalog: Catalog): Metric {
  const metric = catalog.metrics.get(name);
  if (metric === undefined) throw queryError('unknownMetric', { metric: name, near: null });
  return metric;
}

/** Returns the aggregate of a simple metric over `item`, filtered by the metric's own filter and by `more`. */
export function aggregateOverItem(
  metric: SimpleMetric,
  more: readonly string[],
  item: ScopeItem,
  env: BindEnvironment,
): Expr {
  const own = withMetricColumns(metric, item, env);
  const inner = withinMetric(metric, own, env);
  const value = tagAggregates(bindValue(expressionNode(metric.expression), inner), metric.name);
  const whole = predicatesOver(metric, more, own, inner).reduce(filterAggregates, value);
  return ofManifest(whole, env.ctx);
}

/** Returns the conditions under which a simple metric counts a row of `item`: its own filter and `more`. */
function conditionsOverItem(
  metric: SimpleMetric,
  more: readonly string[],
  item: ScopeItem,
  env: BindEnvironment,
): readonly Expr[] {
  const own = withMetricColumns(metric, item, env);
  return predicatesOver(metric, more, own, withinMetric(metric, own, env)).map((p) => ofManifest(p, env.ctx));
}

function withinMetric(metric: SimpleMetric, own: ScopeItem, env: BindEnvironment): BindEnvironment {
  const scope = { ...env.scope, items: [own], parent: null };
  return { ...env, scope, clause: `metric \`${metric.name}\``, aggregates: true, withinMetric: true };
}

function predicatesOver(
  metric: SimpleMetric,
  more: readonly string[],
  own: ScopeItem,
  inner: BindEnvironment,
): readonly Expr[] {
  const { ctx, scope } = inner;
  const rows: BindEnvironment = {
    ...inner,
    aggregates: false,
    windows: false,
    nameOf: (parts, at) =>
      parts.length === 1
        ? columnValue(resolveColumn(scope, parts, ctx, at), ctx, at)
        : parentColumn(parts, own, ctx, bindValue),
  };
  return [...(metric.filter === null ? [] : [metric.filter]), ...more].map((text) =>
    bindPredicateNode(expressionNode(text), rows),
  );
}

/** Adds columns that a grant makes available to the metric only. */
function withMetricColumns(metric: SimpleMetric, item: ScopeItem, env: BindEnvironment): ScopeItem {
  const access = env.ctx.access.relations.get(metric.entity);
  if (item.relation === null || access === undefined) return item;
  const measured = forMetric(access, metric.name);
  if (measured === access) return item;
  return { ...item, columns: new Map([...columnsOf(item.relation, measured, env.ctx), ...item.columns]) };
}

function tagAggregates(expr: Expr, metric: string): Expr {
  const below = mapChildren(
    expr,
    (e) => tagAggregates(e, metric),
    (q) => q,
  );
  return below.kind === 'aggregate' ? Object.freeze({ ...below, metric } satisfies Aggregate) : below;
}

/**
 * Returns the names of the metrics that `metric` uses, including duplicates; empty for a simple metric.
 *
 * @throws QueryError E0511 for a derived metric that does not parse
 */
export function inputsOf(metric: Metric): readonly string[] {
  switch (metric.type) {
    case 'simple':
      return [];
    case 'cumulative':
      return [metric.metric];
    case 'ratio':
      return [metric.numerator.metric, metric.denominator.metric];
    case 'conversion':
      return [metric.base, metric.conversion];
    case 'derived':
      return namesIn(expressionNode(metric.expression));
    default:
      return assertNever(metric);
  }
}

interface LeafUse {
  readonly metric: LeafMetric;
  readonly filters: readonly string[];
}

/** Returns the leaf metrics from which `metric` is computed, possibly itself. The manifest has no cycles. */
export function leafUses(
  metric: Metric,
  catalog: Catalog,
  filters: readonly string[] = [],
): readonly LeafUse[] {
  const below = (name: string, more: readonly string[]): readonly LeafUse[] =>
    leafUses(metricNamed(name, catalog), catalog, more);
  switch (metric.type) {
    case 'simple':
    case 'cumulative':
      return [{ metric, filters }];
    case 'conversion': {
      const rate = metric.calculation === 'conversion_rate';
      return [{ metric, filters }, ...(rate ? below(metric.base, filters) : [])];
    }
    case 'derived':
      return inputsOf(metric).flatMap((name) => below(name, filters));
    case 'ratio':
      return [metric.numerator, metric.denominator].flatMap((input) =>
        below(input.metric, input.filter === null ? filters : [...filters, input.filter]),
      );
    default:
      return assertNever(metric);
  }
}

export function metricAndInputs(metric: Metric, catalog: Catalog): readonly string[] {
  return [
    metric.name,
    ...inputsOf(metric).flatMap((name) => metricAndInputs(metricNamed(name, catalog), catalog)),
  ];
}

export function namesIn(node: Node): readonly string[] {
  const names: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('ColumnRef' in value)
      names.push(nameOfRef(value as Extract<Node, { ColumnRef: unknown }>)); // A node has a single key, which is its kind
    else for (const member of Object.values(value)) visit(member);
  };
  visit(node);
  return names;
}

function nameOfRef(node: Extract<Node, { ColumnRef: unknown }>): string {
  return (node.ColumnRef.fields ?? []).map(stringOf).join('.');
}

/** Returns the base events of `metric` as rows of `item`. @param filters additional predicates on them */
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

/** Returns the table of conversion events. @param environment creates the environment for its aggregates */
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
