import {
  GRAINS,
  type Grain,
  grainNamed,
  type Instant,
  instantNamed,
  type MetricsRequest,
  plainName,
  queryError,
} from 'osl-compiler';
import { type Fields, malformed } from './json-body.js';

/** Fields of the metrics shape; the two spellings are those of MetricFlow's clients. */
export const METRICS_FIELDS: ReadonlySet<string> = new Set([
  'metrics',
  'group_by',
  'groupBy',
  'where',
  'order_by',
  'orderBy',
  'limit',
  'grain',
  'timeGranularity',
  'time_constraint',
]);

const MOST = { metrics: 50, group_by: 20, where: 50, order_by: 70 } as const;
/** UTF-16 units of all predicates together, and of one name. */
const LONGEST_WHERE = 100_000;
const LONGEST_NAME = 200;
const LARGEST_LIMIT = 2_147_483_647;

/**
 * Reads a metrics body in any of its spellings. Values are never shown; what is wrong is named by its field.
 *
 * @throws QueryError E0511
 */
export function readMetricsRequest(fields: Fields): MetricsRequest {
  const metrics = listOf(fields.get('metrics'), 'metrics').map(readMetric);
  if (metrics.length === 0) throw malformed('`metrics` must name a metric');
  const where = readWhere(fields.get('where'));
  return {
    metrics,
    groupBy: listOf(oneOf(fields, 'group_by', 'groupBy'), 'group_by').map((g) => readName(g, 'group_by')),
    where,
    orderBy: listOf(oneOf(fields, 'order_by', 'orderBy'), 'order_by').map(readOrder),
    limit: readLimit(fields.get('limit')),
    timeConstraint: readConstraint(fields.get('time_constraint')),
    grain: readGrain(oneOf(fields, 'grain', 'timeGranularity'), 'grain'),
  };
}

/** A field that has two spellings: one of them may be given. */
function oneOf(fields: Fields, name: string, other: string): unknown {
  const [a, b] = [fields.get(name), fields.get(other)];
  if (a !== undefined && b !== undefined) throw malformed(`\`${name}\` and \`${other}\` are the same field`);
  return a ?? b;
}

function listOf(value: unknown, field: keyof typeof MOST): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(`\`${field}\` must be an array`);
  if (value.length > MOST[field])
    throw queryError('tooLarge', { what: `the length of \`${field}\``, limit: MOST[field] });
  return value;
}

/** The members of an object, none of which is unknown; null where `value` is no object. */
function membersOf(value: unknown, field: string, known: readonly string[]): Fields | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const members = new Map(Object.entries(value));
  for (const name of members.keys())
    if (!known.includes(name)) throw malformed(`an entry of \`${field}\` has ${known.join(', ')} only`);
  return members;
}

/** A metric may be written in full, `osl.metrics.revenue`, as answers write it. */
function nameOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw malformed(`\`${field}\` holds names, or objects with a \`name\``);
  const name = plainName('metrics', value);
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || name.length > LONGEST_NAME)
    throw malformed(`\`${field}\` holds what is no name`);
  return name;
}

function readMetric(value: unknown): MetricsRequest['metrics'][number] {
  const members = membersOf(value, 'metrics', ['name', 'alias']);
  if (members === null) return { name: nameOf(value, 'metrics').toLowerCase(), alias: null };
  const alias = members.get('alias') ?? null;
  return {
    name: nameOf(members.get('name'), 'metrics').toLowerCase(),
    alias: alias === null ? null : nameOf(alias, 'metrics'),
  };
}

function readName(value: unknown, field: string, more: readonly string[] = []) {
  const members = membersOf(value, field, ['name', 'grain', 'timeGranularity', ...more]);
  if (members === null) return { name: nameOf(value, field).toLowerCase(), grain: null };
  return {
    name: nameOf(members.get('name'), field).toLowerCase(),
    grain: readGrain(oneOf(members, 'grain', 'timeGranularity'), field),
  };
}

/** `-name` is descending. */
function readOrder(value: unknown): MetricsRequest['orderBy'][number] {
  if (typeof value === 'string' && value.startsWith('-'))
    return { ...readName(value.slice(1), 'order_by'), descending: true };
  const name = readName(value, 'order_by', ['descending']);
  const descending = membersOf(value, 'order_by', ['name', 'grain', 'timeGranularity', 'descending'])?.get(
    'descending',
  );
  if (descending !== undefined && typeof descending !== 'boolean')
    throw malformed('`descending` must be true or false');
  return { ...name, descending: descending === true };
}

/** A text, or a list of texts, each by itself or as `{sql}`. */
function readWhere(value: unknown): readonly string[] {
  const all = Array.isArray(value)
    ? listOf(value, 'where')
    : value === undefined || value === null
      ? []
      : [value];
  const texts = all.map((one) => {
    const text = typeof one === 'string' ? one : membersOf(one, 'where', ['sql'])?.get('sql');
    if (typeof text !== 'string') throw malformed('`where` must be a text or an array of texts');
    return text;
  });
  if (texts.reduce((sum, t) => sum + t.length, 0) > LONGEST_WHERE)
    throw queryError('tooLarge', { what: '`where`', limit: LONGEST_WHERE });
  return texts;
}

function readLimit(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > LARGEST_LIMIT)
    throw malformed('`limit` must be a whole number, 0 or more');
  return value;
}

function readGrain(value: unknown, field: string): Grain | null {
  if (value === undefined || value === null) return null;
  const grain = typeof value === 'string' ? grainNamed(value) : null;
  if (grain === null) throw malformed(`a grain in \`${field}\` must be one of ${GRAINS.join(', ')}`);
  return grain;
}

function readConstraint(value: unknown): MetricsRequest['timeConstraint'] {
  if (value === undefined || value === null) return null;
  const members = membersOf(value, 'time_constraint', ['start', 'end']);
  if (members === null) throw malformed('`time_constraint` must be an object with `start` and `end`');
  return { start: readInstant(members.get('start')), end: readInstant(members.get('end')) };
}

function readInstant(value: unknown): Instant | null {
  if (value === undefined || value === null) return null;
  const instant = typeof value === 'string' ? instantNamed(value) : null;
  if (instant === null)
    throw malformed('`time_constraint` holds dates (2026-01-31) and times (2026-01-31T10:00:00Z)');
  return instant;
}
