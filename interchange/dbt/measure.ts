import { parseWindow } from 'osl-compiler';
import { CODES } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { safeText } from '../names.js';
import { type ListItem, SourceMapping } from '../source.js';
import {
  type Attempt,
  attempt,
  conjunction,
  hasAggregate,
  NoMapping,
  parseExpression,
  print,
  refuseControlCharacters,
} from '../sql-expression.js';
import { columnText } from '../types.js';
import { columnCalled, type DbtModel } from './model.js';
import { exprOf, isTemplate } from './yaml-model.js';

/** A measure, or the aggregate that a simple metric declares. It cannot be queried, but metrics use it. */
export interface DbtMeasure {
  readonly name: string;
  readonly model: DbtModel;
  readonly part: SourceMapping;
  readonly aggregate: Attempt<string>;
  used: boolean;
}

/** Returns the measures of all models by name. A duplicate name is reported as a problem. */
export function measuresOf(models: readonly DbtModel[]): ReadonlyMap<string, DbtMeasure> {
  const measures = new Map<string, DbtMeasure>();
  for (const model of models) {
    for (const part of model.measures) {
      const name = part.needText('name');
      if (measures.has(name)) part.declaredTwice('measure', name);
      part.ignore('metadata');
      part.lose('config', 'configuration of dbt has no counterpart');
      measures.set(name, {
        name,
        model,
        part,
        aggregate: attempt(() => aggregateOf(part, name, model)),
        used: false,
      });
    }
  }
  return measures;
}

/** Reads the aggregate in `part`, which is a metric or its `metric_aggregation_params`. @throws NoMapping */
export function aggregateMeasure(part: SourceMapping, name: string, model: DbtModel): DbtMeasure {
  const value = aggregateOf(part, name, model);
  return { name, model, part, aggregate: { ok: true, value }, used: true };
}

interface Percentile {
  readonly share: number | null;
  readonly discrete: boolean;
}

/** Reads a percentile, which is under `agg_params` or next to `agg`. */
function percentileOf(part: SourceMapping): Percentile {
  const params = part.child('agg_params');
  if (params === null) {
    const kind = part.text('percentile_type')?.toLowerCase();
    return { share: part.number('percentile'), discrete: kind === 'discrete' };
  }
  if (params.flag('use_approximate_percentile') === true)
    part.note('agg_params', 'approximated', 'percentiles are exact here');
  const discrete = params.flag('use_discrete_percentile') === true;
  return { share: params.number('percentile'), discrete };
}

function aggregateOf(part: SourceMapping, name: string, model: DbtModel): string {
  const kind = (part.text('agg') ?? '').toLowerCase();
  const text = exprOf(part, name);
  part.text('agg_time_dimension');
  const percentile = percentileOf(part);
  if (part.has('non_additive_dimension')) {
    const over = part.child('non_additive_dimension');
    over?.loseAll(
      `a measure that does not add up over \`${safeText(over.needText('name'))}\` has no counterpart`,
    );
    throw new NoMapping('it adds up over some dimensions only');
  }
  timeMustAgree(part, model);
  aggregateText(kind, '1', percentile); // rejects an unknown aggregation before a column is exposed
  if (isTemplate(text)) throw new NoMapping('its expression holds a template');
  refuseControlCharacters(text);
  const node = parseExpression(text);
  if (hasAggregate(node)) throw new NoMapping('its expression holds an aggregate already');
  const scope = {
    entity: model.entity,
    first: 'physical' as const,
    place: part.at('expr'),
    what: `measure \`${name}\``,
  };
  const place = part.has('expr') ? scope.place : part.at('name');
  const value = print(node, { column: (parts) => columnText(parts.at(-1) ?? '', { ...scope, place }) });
  return aggregateText(kind, value, percentile);
}

/** Makes the measure's event time that of the entity. @throws NoMapping if the entity already has a different one */
function timeMustAgree(part: SourceMapping, model: DbtModel): void {
  const own = part.text('agg_time_dimension') ?? model.defaultTime;
  if (own === null) return;
  const column = columnCalled(own, model);
  if (column === null) throw new NoMapping(`its time \`${safeText(own)}\` is not among the columns`);
  if (model.entity.time === null) model.entity.time = column;
  else if (model.entity.time !== column)
    throw new NoMapping(
      `its time is \`${safeText(own)}\`, but that of \`${model.entity.name}\` is \`${model.entity.time}\``,
    );
}

function aggregateText(kind: string, value: string, { share, discrete }: Percentile): string {
  switch (kind) {
    case 'sum':
    case 'min':
    case 'max':
      return `${kind}(${value})`;
    case 'average':
      return `avg(${value})`;
    case 'count':
      return /^\d+$/.test(value) ? 'count(*)' : `count(${value})`;
    case 'count_distinct':
      return `count(distinct ${value})`;
    case 'sum_boolean':
      return `sum(case when ${value} then 1 else 0 end)`;
    case 'median':
      return percentileText(0.5, value, false);
    case 'percentile':
      if (share === null || !(share >= 0 && share <= 1))
        throw new NoMapping('its percentile is not a number from 0 to 1');
      return percentileText(share, value, discrete);
    default:
      throw new NoMapping(`\`${safeText(kind)}\` is not an aggregation`);
  }
}

function percentileText(share: number, value: string, discrete: boolean): string {
  return `percentile_${discrete ? 'disc' : 'cont'}(${share}) within group (order by ${value})`;
}

/** Builds a simple metric from a measure and filters. @throws NoMapping if the measure was lost */
export function simpleMetric(measure: DbtMeasure, filters: readonly string[]): MetricBody {
  if (!measure.aggregate.ok)
    throw new NoMapping(`measure \`${safeText(measure.name)}\`: ${measure.aggregate.reason}`);
  measure.used = true;
  return {
    entity: measure.model.entity.name,
    expression: measure.aggregate.value,
    ...(filters.length > 0 && { filter: conjunction(filters) }),
  };
}

/** A measure or metric used as input of another metric. */
export interface DbtMetricInput {
  readonly name: string;
  readonly alias: string;
  readonly filters: readonly string[];
  /** Offset to another period; null to use the row's own period. */
  readonly offset: MetricOffset | null;
  readonly part: SourceMapping;
}

type MetricOffset = Pick<MetricBody, 'offset_window' | 'offset_to_grain'>;

/** Reads the input at `key`, given as a name or a mapping. @throws NoMapping */
export function inputAt(part: SourceMapping, key: string): DbtMetricInput {
  if (part.isText(key)) {
    const name = part.text(key) ?? '';
    return { name, alias: name, filters: [], offset: null, part };
  }
  const input = part.child(key);
  if (input === null) throw new NoMapping(`it has no \`${key}\``);
  return inputOf(input);
}

/** Reads the inputs listed at `key`, each given as a name or a mapping. @throws NoMapping */
export function inputsAt(part: SourceMapping, key: string): readonly DbtMetricInput[] {
  return part.items(key).flatMap((item) => listed(item, part, key));
}

function listed(item: ListItem, part: SourceMapping, key: string): readonly DbtMetricInput[] {
  if (item instanceof SourceMapping) return [inputOf(item)];
  if (typeof item === 'string') return [{ name: item, alias: item, filters: [], offset: null, part }];
  part.problem(key, CODES.wrongType, `\`${safeText(key)}\` lists names and mappings, not \`${item}\``);
  return [];
}

/** Reads an input. @throws NoMapping for `fill_nulls_with`, or if its offset is not a valid window */
function inputOf(input: SourceMapping): DbtMetricInput {
  const name = input.needText('name');
  const alias = input.text('alias') ?? name;
  const filters = filtersAt(input);
  gapsOf(input);
  return { name, alias, filters, offset: offsetOf(input), part: input };
}

/** Reports `join_to_timespine`, which has no exact counterpart. @throws NoMapping for `fill_nulls_with` */
export function gapsOf(part: SourceMapping): void {
  if (part.has('fill_nulls_with'))
    throw new NoMapping(
      '`fill_nulls_with` has no counterpart in a metric: use coalesce in one derived of it',
    );
  if (part.flag('join_to_timespine') === true)
    part.note('join_to_timespine', 'approximated', 'only running totals have a row for every period');
}

/** Reads the offset of an input; null if the input has none. @throws NoMapping if the offset is not a valid window */
function offsetOf(input: SourceMapping): MetricOffset | null {
  const window = windowAt(input, 'offset_window');
  if (window !== null) return { offset_window: window };
  const grain = input.text('offset_to_grain')?.toLowerCase() ?? null;
  // An unknown grain is rejected and reported later, by the manifest's schema.
  return grain === null ? null : { offset_to_grain: grain as NonNullable<MetricOffset['offset_to_grain']> };
}

/** Reads a window, given as `7 days` or compiled as `{count, granularity}`; null if absent. @throws NoMapping */
export function windowAt(part: SourceMapping, key: string): string | null {
  if (!part.has(key)) return null;
  const parts = part.isText(key) ? null : part.child(key);
  const text =
    parts === null ? (part.text(key) ?? '') : `${parts.number('count')} ${parts.needText('granularity')}s`;
  const plain = text.trim().toLowerCase();
  if (parseWindow(plain) === null) throw new NoMapping(`\`${safeText(text)}\` is not a window`);
  return plain;
}

/** Reads filters, given as a string, a list of strings, or in the form of the compiled manifest. */
export function filtersAt(part: SourceMapping): readonly string[] {
  if (!part.has('filter')) return [];
  if (part.isText('filter') || part.isList('filter')) return part.texts('filter');
  const filter = part.child('filter');
  return (filter?.parts('where_filters') ?? []).map((f) => f.needText('where_sql_template'));
}
