import type { Node } from '@pgsql/types';
import type { Catalog, Metric } from '../../catalog.js';
import { stringOf } from '../ast.js';
import { type LeafMetric, metricNamed, parsedOnce } from './value.js';

/**
 * The names of the metrics that `metric` is made of, as often as it names them; none for a simple one.
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
    case 'derived':
      return namesIn(parsedOnce(metric.expression));
    default: {
      const unknown: never = metric;
      return unknown;
    }
  }
}

/** The metrics below `metric` that look at rows themselves, `metric` where it is one. The manifest has no circles. */
export function leavesOfMetric(metric: Metric, catalog: Catalog): readonly LeafMetric[] {
  if (metric.type === 'simple' || metric.type === 'cumulative') return [metric];
  return inputsOf(metric).flatMap((name) => leavesOfMetric(metricNamed(name, catalog), catalog));
}

/** `metric` and every metric below it. */
export function metricAndInputs(metric: Metric, catalog: Catalog): readonly string[] {
  return [
    metric.name,
    ...inputsOf(metric).flatMap((name) => metricAndInputs(metricNamed(name, catalog), catalog)),
  ];
}

/** The names of columns anywhere in a tree; the parser's nodes are plain objects and arrays. */
function namesIn(node: Node): readonly string[] {
  const names: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('ColumnRef' in value)
      names.push(nameOf(value as Extract<Node, { ColumnRef: unknown }>)); // by its only key
    else for (const member of Object.values(value)) visit(member);
  };
  visit(node);
  return names;
}

function nameOf(node: Extract<Node, { ColumnRef: unknown }>): string {
  return (node.ColumnRef.fields ?? []).map(stringOf).join('.');
}
