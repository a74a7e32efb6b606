import type { Node } from '@pgsql/types';
import { forMetric } from '../../access/access.js';
import type {
  Catalog,
  ConversionMetric,
  CumulativeMetric,
  Metric,
  SimpleMetric,
} from '../../catalog/catalog.js';
import { assertNever, queryError } from '../../errors/errors.js';
import type { Aggregate, Expr } from '../../plan/plan.js';
import { mapChildren, someExpr } from '../../plan/walk.js';
import type { BindEnvironment } from '../environment.js';
import { bindPredicateNode, bindValue, columnValue } from '../expressions/expression.js';
import { quotient } from '../expressions/infix.js';
import { columnsOf, parentColumn } from '../manifest/computed.js';
import { expressionNode, ofManifest } from '../manifest/expression-node.js';
import { innerScope, resolveColumn, type ScopeItem } from '../scope.js';
import { filterAggregates } from './presence.js';

export type LeafMetric = SimpleMetric | CumulativeMetric | ConversionMetric;

export type ValueOfLeaf = (metric: LeafMetric, filters: readonly string[]) => Expr;

/** Value of `metric` composed of leaf values. Errors have no position because the texts are the manifest's. */
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

/** Names in a derived metric are metrics. Divisions are guarded, and aggregates are not allowed. */
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
  const value = ctx.nested(() => bindValue(parsedOnce(text), inner));
  if (someExpr(value, (e) => e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query')) {
    throw ctx.unsupported('a subquery in a derived metric', undefined);
  }
  return ofManifest(value, ctx);
}

export function metricNamed(name: string, catalog: Catalog): Metric {
  const metric = catalog.metrics.get(name);
  if (metric === undefined) throw queryError('unknownMetric', { metric: name, near: null });
  return metric;
}

/** Aggregate of a simple metric over `item`, filtered by its own filter and `more`. */
export function aggregateOverItem(
  metric: SimpleMetric,
  more: readonly string[],
  item: ScopeItem,
  env: BindEnvironment,
): Expr {
  const own = withMetricColumns(metric, item, env);
  const inner = withinMetric(metric, own, env);
  const value = tagAggregates(bindValue(parsedOnce(metric.expression), inner), metric.name);
  const whole = predicatesOver(metric, more, own, inner).reduce(filterAggregates, value);
  return ofManifest(whole, env.ctx);
}

/** Conditions under which a simple metric counts a row of `item`: its own filter and `more`. */
export function conditionsOverItem(
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
    bindPredicateNode(parsedOnce(text), rows),
  );
}

/** Adds columns that a grant of the metric makes available to the metric only. */
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

const parsed = new Map<string, Node>();
/** Few texts repeat; texts of replaced manifests are evicted. */
const MOST_TEXTS = 10_000;

/** Cached syntax tree of a manifest expression. Trees are never modified. */
export function parsedOnce(text: string): Node {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const node = expressionNode(text);
  if (parsed.size >= MOST_TEXTS) parsed.clear();
  parsed.set(text, node);
  return node;
}
