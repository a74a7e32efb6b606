import { windowNamed } from 'osl-compiler';
import { CODES } from '../../manifest/index.js';
import type { Draft, MetricDocument } from '../draft.js';
import type { Part } from '../part.js';
import { report, shown } from '../source.js';
import { divides, fit, mustBePlain, NoFit, nameOf, parseExpression } from '../sql/expression.js';
import { identifier } from '../sql/identifier.js';
import { print } from '../sql/print.js';
import { filterText } from './filter.js';
import { conjunction, type Measure, simpleMetric } from './measure.js';
import { filtersAt, type Input, inputAt, inputOf } from './metric-input.js';
import { descriptionOf } from './read.js';
import { isTemplate } from './reference.js';

/** What a metric is made of, and where it goes. */
export interface MetricContext {
  readonly draft: Draft;
  readonly measures: ReadonlyMap<string, Measure>;
  /** All metrics of the source by their names there. */
  readonly parts: ReadonlyMap<string, Part>;
  /** Names in the manifest of those that are made; null where one was lost, or is being made. */
  readonly made: Map<string, string | null>;
  /** The measure of each simple metric of the draft, and the predicates that it has. */
  readonly simple: Map<string, { readonly measure: Measure; readonly filters: readonly string[] }>;
}

/** The name in the manifest of a metric of the source, made now if it was not. @throws NoFit */
export function metricNamed(name: string, ctx: MetricContext): string {
  const known = ctx.made.get(name);
  if (known === null) throw new NoFit(`metric \`${shown(name)}\` was lost, or is made of itself`);
  if (known !== undefined) return known;
  const part = ctx.parts.get(name);
  if (part === undefined) throw new NoFit(`metric \`${shown(name)}\` is not declared`);
  addMetric(name, part, ctx);
  const made = ctx.made.get(name);
  if (made === null || made === undefined)
    throw new NoFit(`metric \`${shown(name)}\` was lost, or is made of itself`);
  return made;
}

/** Puts one metric of the source into the draft, with what it is made of; or reports it. */
export function addMetric(name: string, part: Part, ctx: MetricContext): void {
  if (ctx.made.has(name)) return;
  ctx.made.set(name, null); // whoever comes back here has gone in a circle
  const own = ctx.draft.named(ctx.draft.metricNames, name, part.place);
  if (own === null) return;
  const described = descriptionOf(part);
  const read = fit(() => documentOf(own, part, described, ctx));
  part.ignore('metadata');
  part.lose('config', 'configuration of dbt has no counterpart');
  part.lose('time_granularity', 'the grain of an answer is that of its question, or a day');
  const label = part.text('label');
  if (!read.ok) {
    part.loseAll(`metric \`${shown(name)}\` does not map: ${read.reason}`);
    return;
  }
  ctx.draft.addMetric(own, read.value, part.place);
  ctx.made.set(name, own);
  if (label !== null) ctx.draft.words([label], own, part.at('label'));
}

function documentOf(own: string, part: Part, description: string | null, ctx: MetricContext): MetricDocument {
  const type = (part.text('type') ?? '').toLowerCase();
  const params = part.child('type_params');
  if (params === null) throw new NoFit('it has no `type_params`');
  params.ignore('input_measures');
  switch (type) {
    case 'simple':
      return simple(own, part, params, description, ctx);
    case 'ratio':
      return ratio(own, part, params, description, ctx);
    case 'derived':
      return derived(own, part, params, description, ctx);
    case 'cumulative':
      return cumulative(own, part, params, description, ctx);
    case 'conversion':
      throw new NoFit('a conversion metric has no counterpart');
    default:
      throw new NoFit(`\`${shown(type)}\` is no type of metric`);
  }
}

function predicates(filters: readonly string[], measure: Measure, part: Part): readonly string[] {
  const { entity, prefix, entityColumns, grains } = measure.model;
  return filters.map((text) =>
    filterText(text, { entity, prefix, entityColumns, grains, place: part.at('filter') }),
  );
}

function measureNamed(name: string, ctx: MetricContext): Measure {
  const measure = ctx.measures.get(name);
  if (measure === undefined) throw new NoFit(`measure \`${shown(name)}\` is not declared`);
  return measure;
}

function simple(
  own: string,
  part: Part,
  params: Part,
  description: string | null,
  ctx: MetricContext,
): MetricDocument {
  const input = inputAt(params, 'measure');
  const measure = measureNamed(input.name, ctx);
  const filters = [
    ...predicates(input.filters, measure, input.part),
    ...predicates(filtersAt(part), measure, part),
  ];
  const document = simpleMetric(measure, filters, description);
  ctx.simple.set(own, { measure, filters });
  return document;
}

/** What of a metric with a filter of its own is under it: a simple metric of a measure. */
function simpleOf(name: string, ctx: MetricContext) {
  const found = ctx.simple.get(name);
  if (found === undefined)
    throw new NoFit(`only a metric of one measure can be filtered again, and \`${shown(name)}\` is none`);
  return found;
}

function ratio(
  _own: string,
  part: Part,
  params: Part,
  description: string | null,
  ctx: MetricContext,
): MetricDocument {
  const above = filtersAt(part);
  const side = (key: 'numerator' | 'denominator') => {
    const input = inputAt(params, key);
    if (input.alias !== input.name)
      input.part.note('alias', 'lost', 'a ratio calls its parts by no other name');
    const metric = metricNamed(input.name, ctx);
    const filters = [...input.filters, ...above];
    if (filters.length === 0) return metric;
    const { measure } = simpleOf(metric, ctx);
    const place = input.filters.length > 0 ? input.part : part;
    return { metric, filter: conjunction(predicates(filters, measure, place)) };
  };
  const [numerator, denominator] = [side('numerator'), side('denominator')];
  return { ...(description !== null && { description }), type: 'ratio', numerator, denominator };
}

function derived(
  own: string,
  part: Part,
  params: Part,
  description: string | null,
  ctx: MetricContext,
): MetricDocument {
  const above = filtersAt(part);
  const inputs = params.parts('metrics').map(inputOf);
  const names = new Map<string, string>();
  for (const input of inputs) {
    const metric = metricNamed(input.name, ctx);
    const filters = [...input.filters, ...above];
    const name = filters.length === 0 ? metric : filtered(own, metric, input, filters, part, ctx);
    names.set(input.alias.toLowerCase(), name);
  }
  const text = params.scalar('expr');
  if (text === null) throw new NoFit('it has no `expr`');
  if (isTemplate(text)) throw new NoFit('its expression holds a template');
  mustBePlain(text);
  const node = parseExpression(text);
  const expression = print(node, {
    column: (parts) => {
      const name = names.get(parts.join('.').toLowerCase());
      if (name === undefined) throw new NoFit(`\`${shown(parts.join('.'))}\` is none of its metrics`);
      return identifier(name);
    },
  });
  if (nameOf(node) === null && divides(node))
    params.note(
      'expr',
      'approximated',
      'a division gives fractions of whole numbers here, and NULL for a division by zero',
    );
  return { ...(description !== null && { description }), type: 'derived', expression };
}

/** A metric of its own for an input with a filter: derived metrics take theirs as they are. */
function filtered(
  own: string,
  metric: string,
  input: Input,
  filters: readonly string[],
  part: Part,
  ctx: MetricContext,
): string {
  const { measure, filters: under } = simpleOf(metric, ctx);
  const place = input.filters.length > 0 ? input.part : part;
  const all = [...under, ...predicates(filters, measure, place)];
  const document = simpleMetric(measure, all, null);
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

function cumulative(
  own: string,
  part: Part,
  params: Part,
  description: string | null,
  ctx: MetricContext,
): MetricDocument {
  const input = inputAt(params, 'measure');
  const measure = measureNamed(input.name, ctx);
  if (measure.model.entity.time === null) throw new NoFit('its measure has no time');
  const more = params.child('cumulative_type_params');
  const window = windowOf(params) ?? (more === null ? null : windowOf(more));
  const grain = (params.text('grain_to_date') ?? more?.text('grain_to_date') ?? null)?.toLowerCase() ?? null;
  const period = more?.text('period_agg')?.toLowerCase() ?? 'first';
  if (period !== 'last')
    part.note(null, 'approximated', 'over longer periods it is the figure at their end (`period_agg: last`)');
  const filters = [
    ...predicates(input.filters, measure, input.part),
    ...predicates(filtersAt(part), measure, part),
  ];
  const metric = base(own, measure, filters, input, ctx);
  return {
    ...(description !== null && { description }),
    type: 'cumulative',
    metric,
    ...(window !== null && { window }),
    // What is no grain, the schema of the manifest refuses, and that is reported.
    ...(grain !== null && { grain_to_date: grain as NonNullable<MetricDocument['grain_to_date']> }),
  };
}

/** `7 days`, or as the compiled manifest has it: `{count, granularity}`. */
function windowOf(params: Part): string | null {
  if (!params.has('window')) return null;
  const parts = params.isText('window') ? null : params.child('window');
  const text =
    parts === null
      ? (params.text('window') ?? '')
      : `${parts.number('count')} ${parts.needText('granularity')}s`;
  const plain = text.trim().toLowerCase();
  if (windowNamed(plain) === null) throw new NoFit(`\`${shown(text)}\` is no window`);
  return plain;
}

/** The simple metric below a running total: one that is there with just these rows, or one of its own. */
function base(
  own: string,
  measure: Measure,
  filters: readonly string[],
  input: Input,
  ctx: MetricContext,
): string {
  for (const [name, known] of ctx.simple)
    if (known.measure === measure && known.filters.join('\n') === filters.join('\n')) return name;
  const document = simpleMetric(measure, filters, null);
  const taken = ctx.parts.has(measure.name) || filters.length > 0;
  const name = ctx.draft.metricNames.take((taken ? `${own}_base` : measure.name).slice(0, 60));
  ctx.draft.addMetric(name, document, input.part.place);
  ctx.simple.set(name, { measure, filters });
  report(input.part.place, 'approximated', `what \`${own}\` adds up is a metric of its own, \`${name}\``);
  return name;
}

/** The metrics of a source by name, with those that measures make. A second one of a name is a problem. */
export function metricParts(parts: readonly Part[]): ReadonlyMap<string, Part> {
  const out = new Map<string, Part>();
  for (const part of parts) {
    const name = part.needText('name');
    if (out.has(name))
      part.problem('name', CODES.duplicateName, `metric \`${shown(name)}\` is declared twice`);
    else out.set(name, part);
  }
  return out;
}
