import type { FuncCall } from '@pgsql/types';
import type { Metric } from '../catalog.js';
import { QueryError } from '../errors.js';
import type { Aggregate, Expr } from '../plan.js';
import { nearest } from '../text.js';
import { mapChildren } from '../walk.js';
import { nameParts, stringOf, textOf } from './ast.js';
import type { Location } from './context.js';
import type { Environment } from './environment.js';
import { bindPredicateNode, bindValue } from './expression.js';
import { fanOutOf } from './fan-out.js';
import type { ScopeItem } from './scope.js';
import { expressionNode } from './standalone.js';

/** `MEASURE(metric)`: the metric's own aggregate over the entity that the query names. */
export function bindMeasure(node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  const name = metricName(node, env);
  if (!env.aggregates) {
    throw ctx.error('grouping', { detail: `a metric is not allowed in ${env.clause}` }, node.location);
  }
  const metric = ctx.catalog.metrics.get(name);
  const item =
    metric === undefined ? undefined : env.scope.items.find((i) => i.relation?.name === metric.entity);
  if (metric === undefined || item === undefined || !ctx.access.relations.has(metric.entity)) {
    throw unknownMetric(name, node, env);
  }
  const value = readable(metric, item, env);
  if (value === null) throw unknownMetric(name, node, env);
  refuseFanOut(metric, item, env, node.location);
  return ctx.at(value, node.location);
}

/** A metric exists for those who may read every column in it; for all others it must not name what it lacks. */
function readable(metric: Metric, item: ScopeItem, env: Environment): Expr | null {
  try {
    return env.ctx.unplaced(() => expand(metric, item, env));
  } catch (error) {
    if (error instanceof QueryError && (error.entry === 'unknownColumn' || error.entry === 'denied'))
      return null;
    throw error;
  }
}

function unknownMetric(name: string, node: FuncCall, env: Environment) {
  const { ctx, scope } = env;
  const visible = [...ctx.catalog.metrics.values()].filter((metric) => {
    const item = scope.items.find((i) => i.relation?.name === metric.entity);
    return item !== undefined && readable(metric, item, env) !== null;
  });
  const near = nearest(
    name,
    visible.map((m) => m.name),
  );
  return ctx.error('unknownMetric', { metric: name, near }, node.location);
}

/** A metric is never a wrong number: where a join repeats rows of its entity, it has no answer. */
function refuseFanOut(metric: Metric, item: ScopeItem, env: Environment, location: Location): void {
  const { from } = env.scope;
  const fan = from === undefined ? null : fanOutOf(from, item.source);
  if (fan === null) return;
  const detail = `metric \`${metric.name}\` would count rows of \`${fan.of}\` several times: one of them has several of \`${fan.by}\``;
  const hint = 'group the metric in a derived table first, then join';
  throw env.ctx.error('unresolvable', { detail, hint }, location);
}

function metricName(node: FuncCall, env: Environment): string {
  const arg = node.args?.[0];
  if (arg !== undefined && node.args?.length === 1) {
    if ('ColumnRef' in arg && arg.ColumnRef.fields?.length === 1) return stringOf(arg.ColumnRef.fields[0]);
    const text = textOf(arg);
    if (text !== null) return text;
  }
  const detail = `${nameParts(node.funcname).join('.').toUpperCase()} takes the name of one metric`;
  throw env.ctx.error('typeMismatch', { detail, hint: 'MEASURE(package_count)' }, node.location);
}

/** Binds the metric's text where only its entity is in scope, and puts its filter on every aggregate of it. */
function expand(metric: Metric, item: ScopeItem, env: Environment): Expr {
  const scope = { ...env.scope, items: [item], parent: null };
  const inner: Environment = { ...env, scope, clause: `metric \`${metric.name}\`` };
  const value = bindValue(expressionNode(metric.expression), inner);
  if (metric.filter === null) return value;
  const filter = bindPredicateNode(expressionNode(metric.filter), {
    ...inner,
    aggregates: false,
    windows: false,
  });
  return filtered(value, filter);
}

function filtered(expr: Expr, filter: Expr): Expr {
  const below = mapChildren(
    expr,
    (e) => filtered(e, filter),
    (q) => q,
  );
  if (below.kind !== 'aggregate') return below;
  const both: Expr =
    below.filter === null
      ? filter
      : Object.freeze({ kind: 'and', args: Object.freeze([below.filter, filter]), type: 'bool' });
  return Object.freeze({ ...below, filter: both } satisfies Aggregate);
}
