import { CODES } from '../../src/model/manifest/index.js';
import type { MetricBody } from '../draft.js';
import { shown } from '../names.js';
import type { Part } from '../part.js';
import { type Fit, fit, hasAggregate, mustBePlain, NoFit, parseExpression } from '../sql/expression.js';
import { conjunction, print } from '../sql/print.js';
import { columnText } from '../types.js';
import { type DbtModel, exprOf } from './model.js';
import { isTemplate } from './read.js';

/** A measure; it cannot be queried itself, but metrics use it. */
export interface DbtMeasure {
  readonly name: string;
  readonly model: DbtModel;
  readonly part: Part;
  /** Its aggregate over the entity, or the reason why there is none. */
  readonly aggregate: Fit<string>;
  used: boolean;
}

/** Measures of all models, by name. A duplicate name is a problem. */
export function measuresOf(models: readonly DbtModel[]): ReadonlyMap<string, DbtMeasure> {
  const measures = new Map<string, DbtMeasure>();
  for (const model of models) {
    for (const part of model.part.parts('measures')) {
      const name = part.needText('name');
      if (measures.has(name))
        part.problem('name', CODES.duplicateName, `measure \`${shown(name)}\` is declared twice`);
      part.ignore('metadata');
      part.lose('config', 'configuration of dbt has no counterpart');
      measures.set(name, { name, model, part, aggregate: fit(() => aggregateOf(part, model)), used: false });
    }
  }
  return measures;
}

function aggregateOf(part: Part, model: DbtModel): string {
  const kind = (part.text('agg') ?? '').toLowerCase();
  const text = exprOf(part);
  part.text('agg_time_dimension');
  const params = part.child('agg_params');
  const percentile = params?.number('percentile') ?? null;
  const discrete = params?.flag('use_discrete_percentile') ?? null;
  const approximate = params?.flag('use_approximate_percentile') ?? null;
  if (part.has('non_additive_dimension')) {
    part
      .child('non_additive_dimension')
      ?.loseAll('a measure that adds up over some dimensions only has no counterpart');
    throw new NoFit('it adds up over some dimensions only');
  }
  timeMustAgree(part, model);
  if (isTemplate(text)) throw new NoFit('its expression holds a template');
  mustBePlain(text);
  const node = parseExpression(text);
  if (hasAggregate(node)) throw new NoFit('its expression holds an aggregate already');
  const scope = {
    entity: model.entity,
    first: 'physical' as const,
    place: part.at('expr'),
    what: `measure \`${part.needText('name')}\``,
  };
  const place = part.has('expr') ? scope.place : part.at('name');
  const value = print(node, { column: (parts) => columnText(parts.at(-1) ?? '', { ...scope, place }) });
  if (approximate === true) part.note('agg_params', 'approximated', 'percentiles are exact here');
  return aggregateText(kind, value, percentile, discrete === true);
}

/** A measure has an event time, but an entity has only one. */
function timeMustAgree(part: Part, model: DbtModel): void {
  const own = part.text('agg_time_dimension') ?? model.defaultTime;
  if (own === null) return;
  const column = model.entity.column(own);
  if (column === null) throw new NoFit(`its time \`${shown(own)}\` is not among the columns`);
  if (model.entity.time === null) model.entity.time = column.name;
  else if (model.entity.time !== column.name)
    throw new NoFit(
      `its time is \`${shown(own)}\`, but that of \`${model.entity.name}\` is \`${model.entity.time}\``,
    );
}

function aggregateText(kind: string, value: string, percentile: number | null, discrete: boolean): string {
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
      if (percentile === null || !(percentile >= 0 && percentile <= 1))
        throw new NoFit('it says no percentile');
      return percentileText(percentile, value, discrete);
    default:
      throw new NoFit(`\`${shown(kind)}\` is no aggregation`);
  }
}

function percentileText(share: number, value: string, discrete: boolean): string {
  return `percentile_${discrete ? 'disc' : 'cont'}(${share}) within group (order by ${value})`;
}

/** Simple metric of a measure with filters. @throws NoFit */
export function simpleMetric(measure: DbtMeasure, filters: readonly string[]): MetricBody {
  if (!measure.aggregate.ok)
    throw new NoFit(`measure \`${shown(measure.name)}\`: ${measure.aggregate.reason}`);
  measure.used = true;
  return {
    entity: measure.model.entity.name,
    expression: measure.aggregate.value,
    ...(filters.length > 0 && { filter: conjunction(filters) }),
  };
}
