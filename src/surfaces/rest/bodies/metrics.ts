import {
  GRAINS,
  type Grain,
  type Instant,
  type MetricsRequest,
  parseInstant,
  queryError,
  unqualifiedName,
} from 'osl-compiler';
import type { UpstreamDetail } from '../../../ask/data/explain.js';
import { malformed } from '../problem.js';
import {
  either,
  exactly,
  flag,
  inAnyCase,
  type JsonShape,
  list,
  oneOf,
  orNull,
  text,
  textOrNull,
  type ValueOf,
} from '../shape.js';

/** Maximum total length of all predicates, in UTF-16 code units. */
const MAX_WHERE_LENGTH = 100_000;

const NAME_PATTERN = '(?:osl\\.metrics\\.)?[\\p{L}_][\\p{L}\\p{M}\\p{N}_ ]{0,199}';
const NAME_LIMITS = { title: 'name', pattern: `^${NAME_PATTERN}$` } as const;
const KEY = text(
  '`entity__column`, an entity, `metric_time` or `relationship__column`, each optionally followed by `__grain`.',
  NAME_LIMITS,
);
const GRAIN: JsonShape<Grain> = inAnyCase(oneOf(...GRAINS));
/** Two names of the same member, both in use by MetricFlow's clients. */
const GRAIN_MEMBERS = { 'grain?': orNull(GRAIN), 'timeGranularity?': orNull(GRAIN) } as const;
const MOMENT = textOrNull('Date, or ISO 8601 time; UTC if it has no offset.');
const CONDITION = either(
  text(
    'SQL predicate that refers to columns and metrics as `{{ Dimension() }}`, `{{ TimeDimension() }}`, `{{ Entity() }}` or `{{ Metric() }}`.',
  ),
  exactly({ sql: text() }),
);

const METRICS = list(
  either(
    text(undefined, NAME_LIMITS),
    exactly({ name: text(undefined, NAME_LIMITS), 'alias?': orNull(text(undefined, NAME_LIMITS)) }),
  ),
  undefined,
  { minItems: 1, maxItems: 50 },
);
const GROUPS = orNull(
  list(
    either(KEY, exactly({ name: KEY, ...GRAIN_MEMBERS })),
    'Dimensions to group by: one row for each combination.',
    {
      maxItems: 20,
    },
  ),
);
const ORDER = orNull(
  list(
    either(
      text('Name of a requested metric or group; a leading `-` means descending.', {
        title: 'name',
        pattern: `^-?${NAME_PATTERN}$`,
      }),
      exactly({ name: KEY, ...GRAIN_MEMBERS, 'descending?': flag() }),
    ),
    'Order of the rows.',
    { maxItems: 70 },
  ),
);
const CONDITIONS = orNull(either(CONDITION, list(CONDITION, undefined, { maxItems: 50 })));
const WHERE: typeof CONDITIONS = { ...CONDITIONS, description: 'Conditions, all of which must hold.' };
const LIMIT: JsonShape<number | null> = orNull({
  type: 'integer',
  minimum: 0,
  maximum: 2_147_483_647,
  description: 'Maximum number of rows.',
});
const TIME_CONSTRAINT = orNull(
  exactly({ 'start?': MOMENT, 'end?': MOMENT }, 'Time range; both ends are inclusive.'),
);

const UPSTREAM: JsonShape<UpstreamDetail> = {
  ...oneOf('statement', 'plan'),
  description:
    'With `explain`: also return the database statement (`statement`), or the statement and its plan (`plan`). Requires an admin role; otherwise E2101.',
};

export const PLANNING = {
  'explain?': orNull(flag('True to validate and plan the query without running it.')),
  'upstream?': UPSTREAM,
} as const;

export const METRICS_BODY = {
  metrics: METRICS,
  'group_by?': GROUPS,
  'groupBy?': GROUPS,
  'where?': WHERE,
  'order_by?': ORDER,
  'orderBy?': ORDER,
  'limit?': LIMIT,
  'time_constraint?': TIME_CONSTRAINT,
  ...GRAIN_MEMBERS,
};

export const METRICS_QUERY = exactly({ ...METRICS_BODY, ...PLANNING }, 'A metrics query.');

type MetricsMember = 'metrics' | 'group_by' | 'where' | 'order_by' | 'limit' | 'time_constraint';

/** Members of a metrics body, each in a single spelling. */
export const METRICS_MEMBERS: Readonly<Record<MetricsMember, Readonly<Record<string, unknown>>>> = {
  metrics: METRICS,
  group_by: GROUPS,
  where: WHERE,
  order_by: ORDER,
  limit: LIMIT,
  time_constraint: TIME_CONSTRAINT,
};

/** Components of the OpenAPI document: parts that several bodies share. */
export const METRICS_COMPONENTS: readonly (readonly [string, JsonShape])[] = [
  ['MetricsGroups', GROUPS],
  ['MetricsOrder', ORDER],
  ['MetricsConditions', WHERE],
  ['TimeConstraint', TIME_CONSTRAINT],
];

const METRICS_SHAPE = exactly(METRICS_BODY);
type MetricsQueryBody = ValueOf<typeof METRICS_SHAPE>;

/** Converts a metrics body in any of the accepted spellings. @throws QueryError E0511, which shows no values */
export function metricsRequestOf(body: MetricsQueryBody): MetricsRequest {
  return {
    metrics: body.metrics.map((metric) => {
      const { name, alias = null } = typeof metric === 'string' ? { name: metric } : metric;
      return { name: metricName(name), alias: alias === null ? null : unqualifiedName('metrics', alias) };
    }),
    groupBy: (eitherSpelling('group_by', body.group_by, 'groupBy', body.groupBy) ?? []).map(groupKey),
    where: conditionsOf(body.where),
    orderBy: (eitherSpelling('order_by', body.order_by, 'orderBy', body.orderBy) ?? []).map(sortKey),
    limit: body.limit ?? null,
    timeConstraint: constraintOf(body.time_constraint),
    grain: grainOf(body),
  };
}

function eitherSpelling<T>(
  name: string,
  value: T | undefined,
  otherName: string,
  otherValue: T | undefined,
): T | undefined {
  if (value !== undefined && otherValue !== undefined)
    throw malformed(`\`${name}\` and \`${otherName}\` are the same field`).about(`/${name}`);
  return value ?? otherValue;
}

type GrainFields = { readonly grain?: Grain | null; readonly timeGranularity?: Grain | null };

function grainOf({ grain, timeGranularity }: GrainFields): Grain | null {
  return eitherSpelling('grain', grain, 'timeGranularity', timeGranularity) ?? null;
}

function metricName(name: string): string {
  return unqualifiedName('metrics', name).toLowerCase();
}

function groupKey(key: string | (GrainFields & { readonly name: string })) {
  return typeof key === 'string'
    ? { name: metricName(key), grain: null }
    : { name: metricName(key.name), grain: grainOf(key) };
}

function sortKey(
  order: string | (GrainFields & { readonly name: string; readonly descending?: boolean }),
): MetricsRequest['orderBy'][number] {
  if (typeof order !== 'string') return { ...groupKey(order), descending: order.descending === true };
  return { ...groupKey(order.replace(/^-/, '')), descending: order.startsWith('-') };
}

function conditionsOf(where: MetricsQueryBody['where']): readonly string[] {
  const all = where === undefined || where === null ? [] : [where].flat();
  const texts = all.map((condition) => (typeof condition === 'string' ? condition : condition.sql));
  if (texts.reduce((sum, t) => sum + t.length, 0) > MAX_WHERE_LENGTH)
    throw queryError('tooLarge', { what: '`where`', limit: MAX_WHERE_LENGTH }).about('/where');
  return texts;
}

function constraintOf(constraint: MetricsQueryBody['time_constraint']): MetricsRequest['timeConstraint'] {
  if (constraint === undefined || constraint === null) return null;
  return { start: instantOf(constraint.start), end: instantOf(constraint.end) };
}

function instantOf(text: string | null | undefined): Instant | null {
  if (text === undefined || text === null) return null;
  const instant = parseInstant(text);
  if (instant === null)
    throw malformed('`time_constraint` holds dates (2026-01-31) and times (2026-01-31T10:00:00Z)').about(
      '/time_constraint',
    );
  return instant;
}
