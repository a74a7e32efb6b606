import type { Node } from '@pgsql/types';
import type { Catalog, Metric } from '../../catalog/catalog.js';
import { assertNever } from '../../errors/errors.js';
import { stringOf } from '../ast.js';
import { type LeafMetric, metricNamed, parsedOnce } from './value.js';

/**
 * Names of the metrics used by `metric`, with repetitions; empty for a simple one.
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
      return namesIn(parsedOnce(metric.expression));
    default:
      return assertNever(metric);
  }
}

interface LeafUse {
  readonly metric: LeafMetric;
  readonly filters: readonly string[];
}

/** Leaf metrics below `metric`, or `metric` itself. The manifest has no cycles. */
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
      names.push(nameOfRef(value as Extract<Node, { ColumnRef: unknown }>)); // nodes are identified by their only key
    else for (const member of Object.values(value)) visit(member);
  };
  visit(node);
  return names;
}

function nameOfRef(node: Extract<Node, { ColumnRef: unknown }>): string {
  return (node.ColumnRef.fields ?? []).map(stringOf).join('.');
}
