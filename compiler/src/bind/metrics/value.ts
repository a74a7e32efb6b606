import type { Node } from '@pgsql/types';
import { forMetric } from '../../access.js';
import type { Catalog, CumulativeMetric, Metric, SimpleMetric } from '../../catalog.js';
import { assertNever, queryError } from '../../errors.js';
import { allOf } from '../../nodes.js';
import type { Aggregate, Expr } from '../../plan.js';
import { mapChildren, someExpr } from '../../walk.js';
import type { Environment } from '../environment.js';
import { bindPredicateNode, bindValue } from '../expression.js';
import { WrittenLiteral } from '../literals.js';
import { columnsFor, innerScope, type ScopeItem } from '../scope.js';
import { settingsFree } from '../settings-free.js';
import { expressionNode } from '../standalone.js';
import { quotient } from './division.js';

/** What a metric's figures are computed from: one that looks at rows, and not at other metrics' results. */
export type LeafMetric = SimpleMetric | CumulativeMetric;

/** The value of a leaf under the filters that ratios on the way to it add. */
export type ValueOfLeaf = (metric: LeafMetric, filters: readonly string[]) => Expr;

/** The value of `metric`, made of the values of its leaves. Its texts are the manifest's, so errors have no place. */
export function metricValue(
  metric: Metric,
  leaf: ValueOfLeaf,
  env: Environment,
  filters: readonly string[] = [],
): Expr {
  switch (metric.type) {
    case 'simple':
    case 'cumulative':
      return leaf(metric, filters);
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

/** The names in a derived metric are metrics, its divisions are those of metrics, and it has no aggregate of its own. */
function bindDerived(text: string, leaf: ValueOfLeaf, env: Environment, filters: readonly string[]): Expr {
  const { ctx } = env;
  const inner: Environment = {
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
  return ofManifest(value, env);
}

export function metricNamed(name: string, catalog: Catalog): Metric {
  const metric = catalog.metrics.get(name);
  if (metric === undefined) throw queryError('unknownMetric', { metric: name, near: null });
  return metric;
}

/** The aggregate of a simple metric over `item`, its filter and `more` on every aggregate of it. */
export function aggregateOverItem(
  metric: SimpleMetric,
  more: readonly string[],
  item: ScopeItem,
  env: Environment,
): Expr {
  const scope = { ...env.scope, items: [withMetricColumns(metric, item, env)], parent: null };
  const clause = `metric \`${metric.name}\``;
  const inner: Environment = { ...env, scope, clause, aggregates: true, withinMetric: true };
  const value = tagAggregates(bindValue(parsedOnce(metric.expression), inner), metric.name);
  const rows: Environment = { ...inner, aggregates: false, windows: false };
  const whole = [...(metric.filter === null ? [] : [metric.filter]), ...more]
    .map((text) => bindPredicateNode(parsedOnce(text), rows))
    .reduce(filterAggregates, value);
  return ofManifest(whole, env);
}

/** A metric is the same figure for everybody, whatever the settings of a session. */
function ofManifest(value: Expr, { ctx }: Environment): Expr {
  return settingsFree(value, {
    valueOf: (e) => ctx.literalValue(e),
    make: (v, type) =>
      ctx.literal(
        typeof v === 'string'
          ? new WrittenLiteral(v, null)
          : v.map((item) => (item === null ? null : new WrittenLiteral(item, null))),
        type,
      ),
  });
}

/** A grant of a metric shows its columns to the metric, and to nothing else. */
function withMetricColumns(metric: SimpleMetric, item: ScopeItem, env: Environment): ScopeItem {
  const access = env.ctx.access.relations.get(metric.entity);
  if (item.relation === null || access === undefined) return item;
  const measured = forMetric(access, metric.name);
  if (measured === access) return item;
  return { ...item, columns: new Map([...columnsFor(item.relation, measured), ...item.columns]) };
}

/** Says of each aggregate in a metric's value which metric it is of. */
function tagAggregates(expr: Expr, metric: string): Expr {
  const below = mapChildren(
    expr,
    (e) => tagAggregates(e, metric),
    (q) => q,
  );
  return below.kind === 'aggregate' ? Object.freeze({ ...below, metric } satisfies Aggregate) : below;
}

/** `expr` with `filter` on every aggregate in it. */
export function filterAggregates(expr: Expr, filter: Expr): Expr {
  const below = mapChildren(
    expr,
    (e) => filterAggregates(e, filter),
    (q) => q,
  );
  if (below.kind !== 'aggregate') return below;
  const both = below.filter === null ? filter : allOf([below.filter, filter]);
  return Object.freeze({ ...below, filter: both } satisfies Aggregate);
}

const parsed = new Map<string, Node>();
/** Texts of a manifest are few; those of manifests that were replaced are not kept for long. */
const MOST_TEXTS = 10_000;

/** The tree of an expression of the manifest. Trees are read, never written. */
export function parsedOnce(text: string): Node {
  const known = parsed.get(text);
  if (known !== undefined) return known;
  const node = expressionNode(text);
  if (parsed.size >= MOST_TEXTS) parsed.clear();
  parsed.set(text, node);
  return node;
}
