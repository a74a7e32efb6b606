import type { FastifyRequest } from 'fastify';
import { identifier, queryError, unqualifiedName } from 'osl-compiler';
import type { UpstreamDetail } from '../../../ask/data/explain.js';
import type { SampleRequest } from '../../../ask/data/sample.js';
import type { EventId, SubscriptionRequest } from '../../../ask/data/subscription.js';
import type { QuestionBody } from '../../../ask/index.js';
import type { BoundValue } from '../../../engine/index.js';
import { malformed } from '../problem.js';
import { exactly, type JsonShape, list, oneOf, orNull, text } from '../shape.js';
import { type JsonFields, jsonFields } from './json.js';
import { METRICS_BODY, METRICS_QUERY, metricsRequestOf, PLANNING } from './metrics.js';
import { bodyReader, oneOfReader } from './reader.js';

const SCALAR: JsonShape<string | number | boolean | null> = { type: ['string', 'number', 'boolean', 'null'] };

/** Values of `$1 …` in a request: at most as many as the Postgres protocol can bind. */
const PARAMETERS = list(
  SCALAR,
  'Values of `$1`, `$2` and so on. Numbers that a double cannot represent exactly must be sent as strings.',
  { maxItems: 65_535 },
);

/**
 * Converts JSON scalars to the values of `$1 …` in Postgres' text format, with null for NULL. The body has already
 * been checked for numbers that JSON parsers would round; clients must send those as strings.
 *
 * @throws QueryError E0511
 */
function boundParameters(list: readonly (string | number | boolean | null)[]): readonly BoundValue[] {
  return list.map((value, i) => ({ format: 0 as const, bytes: parameterBytes(value, i + 1) }));
}

function parameterBytes(value: string | number | boolean | null, n: number): Uint8Array | null {
  if (value === null) return null;
  if (typeof value === 'string' && value.includes('\0'))
    throw malformed(`parameter $${n} holds a NUL character`).about(`/parameters/${n - 1}`);
  return Buffer.from(`${value}`, 'utf8');
}

export interface QueryRequest {
  readonly body: QuestionBody;
  readonly explain: boolean;
  readonly upstream: UpstreamDetail | null;
  readonly parameters: readonly BoundValue[];
}

const QUERIES = {
  osql: exactly({ osql: text('One SELECT in OSL-SQL.'), 'parameters?': PARAMETERS, ...PLANNING }),
  sql: exactly({
    sql: text('One SELECT over the tables that the manifest allows.'),
    'parameters?': PARAMETERS,
    ...PLANNING,
  }),
  metrics: METRICS_QUERY,
};

export const QUERY = {
  oneOf: Object.values(QUERIES),
  description: 'Exactly one of `osql`, `sql` and `metrics`; a body with several is refused with E0513.',
  // The examples reference no tenant's objects, so they run on any server.
  examples: [
    { osql: 'select 1 as one' },
    { osql: 'select $1::int4 + $2::int4 as sum', parameters: [1, 2] },
    { osql: "select upper('a') as big", explain: true },
  ],
};

const readQuery = oneOfReader(QUERIES, () => queryError('mixedBody', {}));

export function readQueryRequest(request: FastifyRequest): QueryRequest {
  return toQueryRequest(jsonFields(request));
}

/** Reads a query from the body. Errors name its fields but never show values. @throws QueryError E0511, E0513 */
export function toQueryRequest(fields: JsonFields): QueryRequest {
  const { kind, members } = readQuery(fields);
  const { explain, upstream = null } = members;
  if (upstream !== null && explain !== true)
    throw malformed('`upstream` goes with `explain` only').about('/upstream');
  const planning = { explain: explain === true, upstream };
  if (kind === 'metrics')
    return { body: { kind, request: metricsRequestOf(members) }, parameters: [], ...planning };
  const body = kind === 'osql' ? { kind, text: members.osql } : { kind, text: members.sql };
  return { body, parameters: boundParameters(members.parameters ?? []), ...planning };
}

const DEFAULT_LIMITS: Readonly<Record<SampleRequest['kind'], number>> = { table: 8, facet: 5 };
const LIMIT: JsonShape<number> = {
  type: 'integer',
  minimum: 1,
  maximum: 100,
  description: 'Maximum number of rows or chunks. Default: 8 rows, 5 chunks.',
};

export const SAMPLE_REQUEST = exactly({
  kind: oneOf('table', 'facet'),
  name: text(undefined, { minLength: 1 }),
  'limit?': orNull(LIMIT),
});

const readSample = bodyReader(SAMPLE_REQUEST);

export function readSampleRequest(request: FastifyRequest): SampleRequest {
  const { kind, name, limit } = readSample(jsonFields(request));
  const unqualified = unqualifiedName(kind === 'table' ? 'entities' : 'facets', name);
  return { kind, name: unqualified, limit: limit ?? DEFAULT_LIMITS[kind] };
}

const SECONDS: JsonShape<number> = {
  type: 'integer',
  minimum: 1,
  maximum: 300,
  description:
    'Interval, in seconds, at which the query runs. Default: 30. Minimum: OSL_SUBSCRIPTION_INTERVAL_SECONDS.',
};
const INTERVAL = { 'interval?': SECONDS } as const;

const SUBSCRIPTIONS = {
  entity: exactly({
    entity: text('Name of an entity, to watch all of its rows and columns that the caller may see.', {
      minLength: 1,
    }),
    ...INTERVAL,
  }),
  osql: exactly({ osql: text('One SELECT in OSL-SQL.'), 'parameters?': PARAMETERS, ...INTERVAL }),
  sql: exactly({
    sql: text('One SELECT over the tables that the manifest allows.'),
    'parameters?': PARAMETERS,
    ...INTERVAL,
  }),
  metrics: exactly({ ...METRICS_BODY, ...INTERVAL }),
};

export const SUBSCRIPTION = {
  oneOf: Object.values(SUBSCRIPTIONS),
  description:
    'Exactly one of `entity`, `osql`, `sql` and `metrics`; a body with several is refused with E0513.',
};

const readOneSubscription = oneOfReader(SUBSCRIPTIONS, () => queryError('mixedBody', {}));
const DEFAULT_INTERVAL_MS = 30_000;
/** Maximum size of the body of a subscription in bytes; it stays in memory while the subscription is open. */
const MAX_SUBSCRIPTION_BYTES = 65_536;

type SubscriptionBody = Pick<SubscriptionRequest, 'body' | 'parameters' | 'intervalMs' | 'since'>;

/** @param minIntervalMs shortest interval that the server allows, in ms @throws QueryError E0511, E0513 */
export function readSubscription(request: FastifyRequest, minIntervalMs: number): SubscriptionBody {
  if (request.body instanceof Buffer && request.body.length > MAX_SUBSCRIPTION_BYTES)
    throw queryError('tooLarge', { what: 'the length of a subscription', limit: MAX_SUBSCRIPTION_BYTES });
  const { kind, members } = readOneSubscription(jsonFields(request));
  const { interval } = members;
  if (interval !== undefined && interval * 1_000 < minIntervalMs)
    throw malformed(`\`interval\` is at least ${minIntervalMs / 1_000} here`).about('/interval');
  const intervalMs = interval === undefined ? Math.max(DEFAULT_INTERVAL_MS, minIntervalMs) : interval * 1_000;
  const since = parseLastEventId(request.headers['last-event-id']);
  const timing = { intervalMs, since };
  if (kind === 'metrics')
    return { body: { kind, request: metricsRequestOf(members) }, parameters: [], ...timing };
  if (kind === 'entity') {
    const name = identifier(unqualifiedName('entities', members.entity));
    return { body: { kind: 'osql', text: `select * from osl.entities.${name}` }, parameters: [], ...timing };
  }
  const body = kind === 'osql' ? { kind, text: members.osql } : { kind, text: members.sql };
  return { body, parameters: boundParameters(members.parameters ?? []), ...timing };
}

/**
 * Reads `Last-Event-ID`. Text that is not an id of this server matches no answer, so the client gets a `changed` event.
 */
function parseLastEventId(header: string | readonly string[] | undefined): EventId | null {
  if (header === undefined || header === '') return null;
  const [, number, answer] = /^(\d{1,9})\.([\w-]{22})$/.exec(`${header}`) ?? [];
  return { number: Number(number ?? 0), answer: answer ?? '' };
}

export function eventIdText({ number, answer }: EventId): string {
  return `${number}.${answer}`;
}
