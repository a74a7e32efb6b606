import type { Node } from '@pgsql/types';
import type { ManifestDocument } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { divides, functionName, isAggregate, NoFit, parseExpression } from '../sql/expression.js';
import { identifier, print } from '../sql/print.js';

/** Maximum length of an expression, in UTF-16 units; nested metrics are inlined. */
const LONGEST = 4000;

/** Expression of a metric, and the difference of its meaning in other tools. */
export interface MetricText {
  readonly text: string;
  readonly differs: string | null;
}

/**
 * A metric as one expression over the fields of datasets.
 *
 * @throws NoFit for running totals, and for metrics that use one
 */
export function metricText(name: string, document: ManifestDocument): MetricText {
  const metric = metricNamed(name, document);
  const text = expressionText(metric, [], document);
  const differs =
    metric.type === 'ratio'
      ? 'a ratio of nothing to nothing may be an error elsewhere'
      : metric.type === 'derived' && divides(parseExpression(metric.expression ?? ''))
        ? 'a division of whole numbers may be cut elsewhere, and one by zero an error'
        : null;
  return { text, differs };
}

function metricNamed(name: string, document: ManifestDocument): MetricBody {
  const metric = document.metrics?.[name];
  if (metric === undefined) throw new NoFit(`metric \`${name}\` is not declared`);
  return metric;
}

function expressionText(metric: MetricBody, filters: readonly string[], document: ManifestDocument): string {
  const text = written(metric, filters, document);
  if (text.length > LONGEST) throw new NoFit(`written out it is longer than ${LONGEST} characters`);
  return text;
}

function written(metric: MetricBody, filters: readonly string[], document: ManifestDocument): string {
  switch (metric.type) {
    case undefined:
    case 'simple': {
      const own = metric.filter === undefined ? filters : [metric.filter, ...filters];
      return simpleText(metric.entity ?? '', metric.expression ?? '', own, document);
    }
    case 'ratio': {
      const [numerator, denominator] = [metric.numerator, metric.denominator].map((input) => {
        if (input === undefined) throw new NoFit('a ratio has two sides');
        const name = typeof input === 'string' ? input : input.metric;
        const more = typeof input === 'string' || input.filter === undefined ? [] : [input.filter];
        return expressionText(metricNamed(name, document), [...filters, ...more], document);
      });
      return `cast(${numerator} as double precision) / nullif(${denominator}, 0)`;
    }
    case 'derived':
      return print(parseExpression(metric.expression ?? ''), {
        column: (parts) => `(${expressionText(metricNamed(parts.join('.'), document), filters, document)})`,
      });
    case 'cumulative':
      throw new NoFit('a running total has no counterpart in the core');
    case 'conversion':
      throw new NoFit('a conversion has no counterpart in the core');
    case 'offset':
      throw new NoFit('a figure of another period has no counterpart in the core');
    default: {
      const unknown: never = metric.type;
      return unknown;
    }
  }
}

/** Aggregates that ignore NULL, so that a filter can be a CASE around their argument. */
const PASS_NULL: ReadonlySet<string> = new Set([
  ...['sum', 'avg', 'min', 'max', 'count', 'stddev', 'stddev_pop', 'stddev_samp'],
  ...['variance', 'var_pop', 'var_samp', 'bool_and', 'bool_or'],
]);

function simpleText(
  entity: string,
  expression: string,
  filters: readonly string[],
  document: ManifestDocument,
): string {
  const field = (name: string): string => `${identifier(entity)}.${identifier(name)}`;
  const names = { column: (parts: readonly string[]) => field(parts.at(-1) ?? '') };
  const condition = filters.map((f) => `(${print(parseExpression(f), names)})`).join(' and ');
  // Counts rows by their key, which makes their dataset explicit.
  const row = field(document.entities[entity]?.primary_key?.[0] ?? '');
  const call = (node: Extract<Node, { FuncCall: unknown }>): string | null => {
    if (!isAggregate(node)) return null;
    const { agg_star, agg_distinct, agg_filter, agg_order, args = [] } = node.FuncCall;
    const [arg, more] = args;
    const plain = more === undefined && agg_filter === undefined && (agg_order ?? []).length === 0;
    const name = functionName(node.FuncCall);
    if (plain && PASS_NULL.has(name)) {
      const value = agg_star === true || arg === undefined ? row : print(arg, names);
      const distinct = agg_distinct === true ? 'distinct ' : '';
      return `${name}(${distinct}${condition === '' ? value : `case when ${condition} then ${value} end`})`;
    }
    if (condition === '') return null;
    if (agg_filter !== undefined)
      throw new NoFit('two filters on one aggregate have no counterpart in the core');
    return `${print(node, names)} filter (where ${condition})`;
  };
  return print(parseExpression(expression), { ...names, call });
}
