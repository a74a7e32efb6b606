import type { ImportDraft, MetricBody } from '../draft.js';
import { safeText } from '../names.js';
import { report, type SourceMapping } from '../source.js';
import {
  attempt,
  conjunction,
  identifier,
  NoMapping,
  parseExpression,
  print,
  refuseControlCharacters,
} from '../sql-expression.js';
import { reportDivision } from '../types.js';
import { filterText } from './filter.js';
import {
  aggregateMeasure,
  type DbtMeasure,
  type DbtMetricInput,
  filtersAt,
  gapsOf,
  inputAt,
  inputsAt,
  simpleMetric,
  windowAt,
} from './measure.js';
import { columnCalled, type DbtModel } from './model.js';
import { descriptionOf, isTemplate } from './yaml-model.js';

/** State shared while metrics are converted. */
export interface MetricContext {
  readonly draft: ImportDraft;
  readonly measures: ReadonlyMap<string, DbtMeasure>;
  readonly parts: ReadonlyMap<string, SourceMapping>;
  /** The semantic model of each metric that is declared inside a semantic model. */
  readonly owners: ReadonlyMap<SourceMapping, DbtModel>;
  /** Semantic models by their names in the source. */
  readonly models: ReadonlyMap<string, DbtModel>;
  /** Names in the manifest, by name in the source; null if a metric was lost or is still being converted. */
  readonly made: Map<string, string | null>;
  readonly simple: Map<string, { readonly measure: DbtMeasure; readonly filters: readonly string[] }>;
}

/** Returns the manifest's name for a source metric, adding the metric if necessary. @throws NoMapping */
function metricNamed(name: string, ctx: MetricContext): string {
  const part = ctx.parts.get(name);
  if (part !== undefined) addMetric(name, part, ctx);
  const made = ctx.made.get(name);
  if (made === undefined) throw new NoMapping(`metric \`${safeText(name)}\` is not declared`);
  if (made === null) throw new NoMapping(`metric \`${safeText(name)}\` was lost, or is made of itself`);
  return made;
}

/** Adds one source metric and its inputs to the draft, or reports why the metric cannot be converted. */
export function addMetric(name: string, part: SourceMapping, ctx: MetricContext): void {
  if (ctx.made.has(name)) return;
  ctx.made.set(name, null); // a second visit means a cycle
  const own = ctx.draft.named(ctx.draft.metricNames, name, part.place);
  if (own === null) return;
  const described = descriptionOf(part);
  const read = attempt(() => documentOf(own, part, ctx));
  part.ignore('metadata');
  part.lose('config', 'configuration of dbt has no counterpart');
  part.lose('time_granularity', 'the grain of an answer is that of its question, or a day');
  const label = part.text('label');
  if (!read.ok) {
    part.loseAll(`metric \`${safeText(name)}\` does not map: ${read.reason}`);
    return;
  }
  ctx.draft.addMetric(own, read.value, part.place, described);
  ctx.made.set(name, own);
  const isHidden = [part.flag('hidden'), part.child('type_params')?.flag('is_private')].includes(true);
  if (isHidden)
    part.note(
      null,
      'approximated',
      `metric \`${safeText(name)}\` is hidden; here whoever may read its columns may ask for it`,
      'high',
    );
  if (label !== null) ctx.draft.words([label], own, part.at('label'));
}

/** A source metric during its conversion. */
interface MetricSource {
  readonly own: string;
  readonly part: SourceMapping;
  /** The metric's `type_params`; in the newer YAML form, which does not have that key, the metric itself. */
  readonly params: SourceMapping;
  readonly ctx: MetricContext;
}

function documentOf(own: string, part: SourceMapping, ctx: MetricContext): MetricBody {
  const type = (part.text('type') ?? '').toLowerCase();
  const params = paramsOf(part);
  params.ignore('input_measures');
  const making: MetricSource = { own, part, params, ctx };
  switch (type) {
    case 'simple':
      return simple(making);
    case 'ratio':
      return ratio(making);
    case 'derived':
      return derivedMetric(making);
    case 'cumulative':
      return cumulative(making);
    case 'conversion':
      return conversion(making);
    default:
      throw new NoMapping(`\`${safeText(type)}\` is not a type of metric`);
  }
}

/** Keys that the newer YAML form has next to `type` instead of in `type_params`. */
const OWN_PARAMS = [
  ...['agg', 'expr', 'input_metrics', 'input_metric', 'numerator', 'denominator'],
  ...['base_metric', 'conversion_metric'],
] as const;

function paramsOf(part: SourceMapping): SourceMapping {
  const params = part.child('type_params');
  if (params !== null) return params;
  if (OWN_PARAMS.some((key) => part.has(key))) return part;
  throw new NoMapping('it has no `type_params`');
}

function predicates(filters: readonly string[], { model }: DbtMeasure): readonly string[] {
  return filters.map((text) => filterText(text, model));
}

function measureOf({ params, ctx }: MetricSource): {
  readonly input: DbtMetricInput;
  readonly measure: DbtMeasure;
} {
  const input = inputAt(params, 'measure');
  return { input, measure: measureNamed(input.name, ctx) };
}

function measureNamed(name: string, ctx: MetricContext): DbtMeasure {
  const measure = ctx.measures.get(name);
  if (measure === undefined) throw new NoMapping(`measure \`${safeText(name)}\` is not declared`);
  return measure;
}

/** Returns the filters of both the input and the metric, as predicates over the measure's rows. */
function rowsOf({ part }: MetricSource, input: DbtMetricInput, measure: DbtMeasure): readonly string[] {
  return [...predicates(input.filters, measure), ...predicates(filtersAt(part), measure)];
}

function simple(making: MetricSource): MetricBody {
  const stated = making.params.has('measure') ? measureOf(making) : null;
  const measure = stated?.measure ?? ownMeasure(making);
  const filters =
    stated === null ? predicates(filtersAt(making.part), measure) : rowsOf(making, stated.input, measure);
  const document = simpleMetric(measure, filters);
  making.ctx.simple.set(making.own, { measure, filters });
  return document;
}

/** Reads the aggregate of a simple metric that does not use a measure. @throws NoMapping */
function ownMeasure({ part, params, ctx }: MetricSource): DbtMeasure {
  gapsOf(params);
  const name = part.needText('name');
  const compiled = params.child('metric_aggregation_params');
  if (compiled === null) {
    const owner = ctx.owners.get(part);
    if (owner === undefined) throw new NoMapping('a simple metric has a measure, or stands in a model');
    if (!part.has('agg')) throw new NoMapping('it has no `agg`');
    return aggregateMeasure(part, name, owner);
  }
  if (params.has('expr') && params.scalar('expr') !== compiled.scalar('expr'))
    params.note('expr', 'lost', 'its aggregate states another expression');
  const model = compiled.needText('semantic_model');
  const owner = ctx.models.get(model);
  if (owner === undefined)
    throw new NoMapping(`semantic model \`${safeText(model)}\` is not there, or was lost`);
  return aggregateMeasure(compiled, name, owner);
}

/** Returns the measure and filters of a simple metric. @throws NoMapping for other kinds, which cannot be filtered */
function simpleOf(name: string, ctx: MetricContext) {
  const found = ctx.simple.get(name);
  if (found === undefined)
    throw new NoMapping(
      `only a metric of one measure can be filtered again, and \`${safeText(name)}\` is none`,
    );
  return found;
}

function ratio({ part, params, ctx }: MetricSource): MetricBody {
  const above = filtersAt(part);
  const side = (key: 'numerator' | 'denominator') => {
    const input = inputAt(params, key);
    if (input.offset !== null) throw new NoMapping('a ratio of two periods is a derived metric here');
    if (input.alias !== input.name)
      input.part.note('alias', 'lost', 'a ratio calls its parts by no other name');
    const metric = metricNamed(input.name, ctx);
    const filters = [...input.filters, ...above];
    if (filters.length === 0) return metric;
    return { metric, filter: conjunction(predicates(filters, simpleOf(metric, ctx).measure)) };
  };
  const [numerator, denominator] = [side('numerator'), side('denominator')];
  return { type: 'ratio', numerator, denominator };
}

function derivedMetric(making: MetricSource): MetricBody {
  const { part, params, ctx } = making;
  const above = filtersAt(part);
  const inputs = inputsOf(making);
  const names = new Map<string, string>();
  for (const input of inputs) {
    const metric = metricNamed(input.name, ctx);
    const filters = [...input.filters, ...above];
    const filtered = filters.length === 0 ? metric : addFilter(making, metric, input, filters);
    names.set(input.alias.toLowerCase(), addOffset(making, filtered, input));
  }
  const text = params.scalar('expr');
  if (text === null) throw new NoMapping('it has no `expr`');
  if (isTemplate(text)) throw new NoMapping('its expression holds a template');
  refuseControlCharacters(text);
  const node = parseExpression(text);
  const expression = print(node, {
    column: (parts) => {
      const name = names.get(parts.join('.').toLowerCase());
      if (name === undefined) throw new NoMapping(`\`${safeText(parts.join('.'))}\` is none of its metrics`);
      return identifier(name);
    },
  });
  reportDivision(node, params.at('expr'));
  return { type: 'derived', expression };
}

/** Reads the inputs of a derived metric from `metrics` or else `input_metrics`. Unread lists are reported as lost. */
function inputsOf({ part, params }: MetricSource): readonly DbtMetricInput[] {
  if (params.has('metrics')) return inputsAt(params, 'metrics');
  return inputsAt(params.has('input_metrics') ? params : part, 'input_metrics');
}

/** Adds a metric for a filtered input, because a derived metric cannot contain filters, and returns its name. */
function addFilter(
  { own, part, ctx }: MetricSource,
  metric: string,
  input: DbtMetricInput,
  filters: readonly string[],
): string {
  const { measure, filters: under } = simpleOf(metric, ctx);
  const place = input.filters.length > 0 ? input.part : part;
  const document = simpleMetric(measure, [...under, ...predicates(filters, measure)]);
  const name = ctx.draft.metricNames.take(
    `${own}_${input.alias}`.slice(0, 60).replace(/[^A-Za-z0-9_]/g, '_'),
  );
  ctx.draft.addMetric(name, document, input.part.place);
  report(
    place.at('filter'),
    'approximated',
    `the filtered input of \`${own}\` is a metric of its own, \`${name}\``,
  );
  return name;
}

function addOffset(
  { own, ctx }: MetricSource,
  metric: string,
  { alias, offset, part }: DbtMetricInput,
): string {
  if (offset === null) return metric;
  const name = ctx.draft.metricNames.take(`${own}_${alias}`.slice(0, 60).replace(/[^A-Za-z0-9_]/g, '_'));
  ctx.draft.addMetric(name, { type: 'offset', metric, ...offset }, part.place);
  report(
    part.at(offset.offset_window === undefined ? 'offset_to_grain' : 'offset_window'),
    'approximated',
    `the input of another period is a metric of its own, \`${name}\`: that of the whole period, not day by day`,
  );
  return name;
}

function cumulative(making: MetricSource): MetricBody {
  const { part, params } = making;
  const more = params.child('cumulative_type_params');
  const { input, measure, filters } = params.has('measure')
    ? { ...measureOf(making), filters: [] }
    : totalOf(making, more);
  if (measure.model.entity.time === null) throw new NoMapping('its measure has no time');
  const window = windowAt(params, 'window') ?? (more === null ? null : windowAt(more, 'window'));
  const grain = (params.text('grain_to_date') ?? more?.text('grain_to_date') ?? null)?.toLowerCase() ?? null;
  const aggregated = more ?? params;
  const period = aggregated.text('period_agg')?.toLowerCase() ?? 'first';
  const [at, key] = aggregated.has('period_agg') ? [aggregated, 'period_agg'] : [part, null];
  if (period !== 'last')
    at.note(key, 'approximated', 'over longer periods it is the figure at their end (`period_agg: last`)');
  const metric = base(making, input, measure, [...filters, ...rowsOf(making, input, measure)], 'adds up');
  return {
    type: 'cumulative',
    metric,
    ...(window !== null && { window }),
    // An unknown grain is rejected and reported later, by the manifest's schema.
    ...(grain !== null && { grain_to_date: grain as NonNullable<MetricBody['grain_to_date']> }),
  };
}

function totalOf(making: MetricSource, more: SourceMapping | null) {
  const { part, params, ctx } = making;
  if (params.has('metric_aggregation_params')) {
    const name = part.needText('name');
    const input: DbtMetricInput = { name, alias: name, filters: [], offset: null, part };
    return { input, measure: ownMeasure(making), filters: [] };
  }
  const input = more?.has('metric') ? inputAt(more, 'metric') : inputAt(params, 'input_metric');
  return { input, ...simpleOf(metricNamed(input.name, ctx), ctx) };
}

function conversion(making: MetricSource): MetricBody {
  const { part, params } = making;
  const direct = params.has('base_metric') || params.has('conversion_metric');
  const own = direct ? params : params.child('conversion_type_params');
  if (own === null) throw new NoMapping('it has no `conversion_type_params`');
  const [from, to] = (['base', 'conversion'] as const).map((key) => sideOf(key, own, making));
  if (from === undefined || to === undefined) throw new NoMapping('it has no two sides');
  const window = windowAt(own, 'window');
  const entity = own.needText('entity');
  const properties = own.parts('constant_properties').map((p) => ({
    base: propertyOf(p.needText('base_property'), from.measure),
    conversion: propertyOf(p.needText('conversion_property'), to.measure),
  }));
  const keys = { base: entityColumn(entity, from.measure), conversion: entityColumn(entity, to.measure) };
  const rows = [...from.filters, ...predicates(filtersAt(part), from.measure)];
  const calculation = own.text('calculation')?.toLowerCase() ?? null;
  return {
    type: 'conversion',
    base: base(making, from.input, from.measure, rows, 'starts from'),
    conversion: base(making, to.input, to.measure, to.filters, 'counts'),
    constant_properties: [keys, ...properties],
    ...(window !== null && { window }),
    // An unknown calculation is rejected and reported later, by the manifest's schema.
    ...(calculation !== null && { calculation: calculation as NonNullable<MetricBody['calculation']> }),
  };
}

function sideOf(key: 'base' | 'conversion', own: SourceMapping, { ctx }: MetricSource) {
  const side = own.has(`${key}_measure`)
    ? measuredBy(inputAt(own, `${key}_measure`), ctx)
    : metricBy(inputAt(own, `${key}_metric`), ctx);
  if (side.measure.model.entity.time === null)
    throw new NoMapping(`\`${safeText(side.input.name)}\` has no time`);
  return side;
}

function measuredBy(input: DbtMetricInput, ctx: MetricContext) {
  const measure = measureNamed(input.name, ctx);
  return { input, measure, filters: predicates(input.filters, measure) };
}

function metricBy(input: DbtMetricInput, ctx: MetricContext) {
  const { measure, filters } = simpleOf(metricNamed(input.name, ctx), ctx);
  return { input, measure, filters: [...filters, ...predicates(input.filters, measure)] };
}

function entityColumn(entity: string, { model }: DbtMeasure): string {
  const column = model.entityColumns.get(entity.toLowerCase());
  if (column === undefined)
    throw new NoMapping(`\`${model.entity.name}\` has no entity \`${safeText(entity)}\``);
  return column;
}

function propertyOf(name: string, { model }: DbtMeasure): string {
  const column = columnCalled(name, model) ?? model.entityColumns.get(name.toLowerCase());
  if (column === undefined)
    throw new NoMapping(`\`${safeText(name)}\` is not a column of \`${model.entity.name}\``);
  return column;
}

/**
 * Returns the name of the simple metric on which a cumulative or conversion metric is based: an existing one with the
 * same measure and filters, or a new one.
 */
function base(
  { own, ctx }: MetricSource,
  input: DbtMetricInput,
  measure: DbtMeasure,
  filters: readonly string[],
  does: 'adds up' | 'starts from' | 'counts',
): string {
  for (const [name, known] of ctx.simple)
    if (known.measure === measure && known.filters.join('\n') === filters.join('\n')) return name;
  const document = simpleMetric(measure, filters);
  const taken = ctx.parts.has(measure.name) || filters.length > 0;
  const name = ctx.draft.metricNames.take((taken ? `${own}_base` : measure.name).slice(0, 60));
  ctx.draft.addMetric(name, document, input.part.place);
  ctx.simple.set(name, { measure, filters });
  report(input.part.place, 'approximated', `what \`${own}\` ${does} is a metric of its own, \`${name}\``);
  return name;
}

/** Returns the metrics of a source by name. A duplicate name is reported as a problem. */
export function metricParts(parts: readonly SourceMapping[]): ReadonlyMap<string, SourceMapping> {
  const out = new Map<string, SourceMapping>();
  for (const part of parts) {
    const name = part.needText('name');
    if (out.has(name)) part.declaredTwice('metric', name);
    else out.set(name, part);
  }
  return out;
}
