import { parseWindow } from 'osl-compiler';
import type { ImportDraft, MetricBody } from '../draft.js';
import { safeText } from '../names.js';
import { report, type SourceMapping } from '../source.js';
import { attempt, conjunction, hasAggregate, identifier, NoMapping, print } from '../sql-expression.js';
import { reportDivision } from '../types.js';
import {
  type Cube,
  type CubeScope,
  type CubeSql,
  columnSql,
  isHidden,
  parseCubeSql,
  referenceOf,
  textOf,
} from './read.js';

/** State shared while measures are converted. */
export interface MeasureContext {
  readonly draft: ImportDraft;
  readonly cubes: ReadonlyMap<string, Cube>;
  /** Metric names by lower-case `cube.measure`; null if the measure was lost or is still being converted. */
  readonly made: Map<string, string | null>;
  /** Measure names used in more than one cube, in lower case. */
  readonly shared: ReadonlySet<string>;
}

/** Returns the measure names used in several cubes. They clash because metrics share one namespace in a manifest. */
export function sharedNames(cubes: Iterable<Cube>): ReadonlySet<string> {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const cube of cubes) {
    for (const name of cube.measures.keys()) (seen.has(name) ? shared : seen).add(name);
  }
  return shared;
}

/** Adds the metrics of a cube; hidden measures are added only if another measure needs them. */
export function addMeasures(cube: Cube, ctx: MeasureContext): void {
  for (const [name, part] of cube.measures) if (!isHidden(part)) addMeasure(cube, name, part, ctx);
}

/** Reports hidden measures: as lost if unused, otherwise as available to everyone who may read their columns. */
export function loseHidden(cube: Cube, ctx: MeasureContext): void {
  for (const [name, part] of cube.measures) {
    const made = ctx.made.get(key(cube, name));
    if (made === undefined)
      part.loseAll(`measure \`${safeText(name)}\` is hidden, and nothing is made of it`);
    else if (isHidden(part) && made !== null)
      part.note(
        null,
        'approximated',
        `measure \`${safeText(name)}\` is hidden; here whoever may read its columns may ask for it`,
        'high',
      );
  }
}

export function key(cube: Cube, measure: string): string {
  return `${cube.name}.${measure}`.toLowerCase();
}

/** Returns the name of the metric for a measure, adding the metric first if necessary. @throws NoMapping */
function metricOf(cubeName: string, measure: string, ctx: MeasureContext): string {
  const cube = ctx.cubes.get(cubeName.toLowerCase());
  const part = cube?.measures.get(measure.toLowerCase());
  if (cube === undefined || part === undefined)
    throw new NoMapping(`\`${safeText(cubeName)}.${safeText(measure)}\` is not a measure`);
  const made = addMeasure(cube, measure.toLowerCase(), part, ctx);
  if (made === null) throw new NoMapping(`measure \`${safeText(measure)}\` was lost, or is made of itself`);
  return made;
}

const OF_MEASURES: Readonly<Record<string, string>> = {
  format: 'how a value is shown is the matter of who shows it',
  meta: 'metadata of an application has no counterpart',
  drill_members: 'drilling down is the matter of the client',
  drill_filters: 'drilling down is the matter of the client',
  cumulative: 'the older `cumulative` has no counterpart',
  aliases: 'a metric has one name',
};

function addMeasure(cube: Cube, name: string, part: SourceMapping, ctx: MeasureContext): string | null {
  const known = ctx.made.get(key(cube, name));
  if (known !== undefined) return known;
  ctx.made.set(key(cube, name), null);
  const written = part.needText('name');
  const wanted = ctx.shared.has(name) ? `${cube.name}_${written}` : written;
  const own = ctx.draft.named(ctx.draft.metricNames, wanted, part.place);
  if (own === null) return null;
  if (wanted !== written)
    report(
      part.place,
      'approximated',
      `several cubes have a measure \`${safeText(written)}\`; this one is called \`${own}\``,
    );
  const read = attempt(() => documentOf(own, cube, part, ctx));
  if (!read.ok) return part.loseAll(`measure \`${safeText(written)}\` does not map: ${read.reason}`);
  const format = formatOf(part);
  for (const [other, why] of Object.entries(OF_MEASURES))
    if (other !== 'format' || format.format === undefined) part.lose(other, why);
  ctx.draft.addMetric(own, { ...read.value, ...format }, part.place);
  ctx.made.set(key(cube, name), own);
  const title = part.text('title');
  if (title !== null) ctx.draft.words([title], own, part.at('title'));
  return own;
}

/** Converts `percent` and `currency`; other formats are left for the caller to report as lost. */
function formatOf(part: SourceMapping): Pick<MetricBody, 'format'> {
  const kind = part.members['format'];
  if (kind !== 'percent' && kind !== 'currency') return {};
  part.text('format');
  const code = kind === 'currency' ? (part.text('currency')?.toUpperCase() ?? null) : null;
  return { format: { kind, ...(code !== null && { currency: code }) } };
}

function documentOf(own: string, cube: Cube, part: SourceMapping, ctx: MeasureContext): MetricBody {
  for (const word of [
    'multi_stage',
    'group_by',
    'reduce_by',
    'add_group_by',
    'time_shift',
    'order_by',
    'case',
  ])
    if (part.has(word) && part.members[word] !== false) throw new NoMapping(`\`${word}\` has no counterpart`);
  const type = part.needText('type');
  const text = part.scalar('sql');
  const sql = text === null ? null : parseCubeSql(text);
  const scope: CubeScope = { cube, place: part.at('sql'), what: `measure \`${own}\`` };
  const filters = part
    .parts('filters')
    .map((f) => columnSql(parseCubeSql(f.needText('sql')), { ...scope, place: f.at('sql') }));
  const said = textOf(part, 'description');
  const description = said === null ? {} : { description: said };
  if (sql !== null && CALCULATED.has(type)) {
    if (filters.length > 0)
      throw new NoMapping(
        'a calculated measure has no filters: write them into the measures that it is made of',
      );
    return { ...description, ...calculatedMetric(sql, scope, part, ctx) };
  }
  const expression = aggregate(type, sql === null ? null : columnSql(sql, scope), part);
  const simple: MetricBody = {
    entity: cube.entity.name,
    expression,
    ...(filters.length > 0 && { filter: conjunction(filters) }),
  };
  const window = type === 'running_total' ? {} : spanOf(part);
  if (window === null) return { ...description, ...simple };
  if (cube.entity.time === null) throw new NoMapping('a running total needs the one time of its cube');
  const base = ctx.draft.metricNames.take(`${own.slice(0, 55)}_base`);
  ctx.draft.addMetric(base, simple, part.place);
  report(part.place, 'approximated', `what \`${own}\` adds up is a metric of its own, \`${base}\``);
  return { ...description, type: 'cumulative', metric: base, ...window };
}

const CALCULATED: ReadonlySet<string> = new Set(['number', 'string', 'boolean', 'time']);

/** Converts SQL that refers to measures to a derived metric, and SQL that contains aggregates to a simple metric. */
function calculatedMetric(
  sql: CubeSql,
  scope: CubeScope,
  part: SourceMapping,
  ctx: MeasureContext,
): MetricBody {
  if (part.has('rolling_window'))
    throw new NoMapping('a rolling window over a calculated measure has no counterpart');
  if (hasAggregate(sql.node)) return { entity: scope.cube.entity.name, expression: columnSql(sql, scope) };
  const others = new Set<string>();
  const expression = print(sql.node, {
    column: (parts) => {
      const reference = referenceOf(parts, sql, scope.cube.name);
      if (reference.kind === 'column') throw new NoMapping('it is made of a column, without an aggregate');
      if (reference.cube.toLowerCase() !== scope.cube.name.toLowerCase()) others.add(reference.cube);
      return identifier(metricOf(reference.cube, reference.member, ctx));
    },
  });
  if (others.size > 0)
    part.note(
      'sql',
      'approximated',
      'measures of several cubes are each added up by themselves, before they are put together',
    );
  reportDivision(sql.node, part.at('sql'));
  return { type: 'derived', expression };
}

function aggregate(type: string, value: string | null, part: SourceMapping): string {
  if (type === 'count') return value === null ? 'count(*)' : `count(${value})`;
  if (value === null) throw new NoMapping('it has no `sql`');
  switch (type) {
    case 'sum':
    case 'avg':
    case 'min':
    case 'max':
      return `${type}(${value})`;
    case 'running_total':
      return `sum(${value})`;
    case 'count_distinct':
      return `count(distinct ${value})`;
    case 'count_distinct_approx':
      part.note('type', 'approximated', 'the count is exact here');
      return `count(distinct ${value})`;
    default:
      throw new NoMapping(`\`${safeText(type)}\` is not a type of measure`);
  }
}

type RollingWindow = Pick<MetricBody, 'window' | 'grain_to_date'>;

/** Reads the span of a rolling window: empty if unbounded, null if there is no window. @throws NoMapping */
function spanOf(part: SourceMapping): RollingWindow | null {
  const rolling = part.child('rolling_window');
  if (rolling === null) return null;
  const type = rolling.text('type') ?? 'fixed';
  const grain =
    type === 'to_date' ? rolling.needText('granularity') : /^(year|quarter|month)_to_date$/.exec(type)?.[1];
  // An unknown grain is rejected and reported later, by the manifest's schema.
  if (grain !== undefined) return { grain_to_date: grain as NonNullable<RollingWindow['grain_to_date']> };
  if (rolling.has('leading')) throw new NoMapping('a window that looks ahead has no counterpart');
  if ((rolling.text('offset') ?? 'end') !== 'end')
    throw new NoMapping('a window from the start of a period has no counterpart');
  const trailing = rolling.text('trailing');
  if (trailing === null) throw new NoMapping('its window says no `trailing`');
  if (trailing === 'unbounded') return {};
  if (parseWindow(trailing) === null) throw new NoMapping(`\`${safeText(trailing)}\` is not a window`);
  return { window: trailing };
}
