import type { FastifyRequest } from 'fastify';
import { identifier, queryError, unqualifiedName } from 'osl-compiler';
import type { EventId, SubscriptionRequest } from '../../../ask/data/subscription.js';
import { malformed } from '../request-errors.js';
import { exactly, type JsonShape, text } from '../shape.js';
import { jsonFields } from './json.js';
import { METRICS_BODY, metricsRequestOf } from './metrics.js';
import { boundParameters, PARAMETERS } from './query.js';
import { readerOfOne } from './reader.js';

const SECONDS: JsonShape<number> = {
  type: 'integer',
  minimum: 1,
  maximum: 300,
  description:
    'Interval, in seconds, at which the query runs. Default 30; the server sets a minimum (OSL_SUBSCRIPTION_INTERVAL_SECONDS).',
};
const INTERVAL = { 'interval?': SECONDS } as const;

const SUBSCRIPTIONS = {
  entity: exactly({
    entity: text('Name of an entity: all of its rows and columns that the caller may see.', { minLength: 1 }),
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

const readOne = readerOfOne(SUBSCRIPTIONS, () => queryError('mixedBody', {}));
const DEFAULT_MS = 30_000;
/** Maximum size of a body in bytes, since it stays in memory while the subscription is open. */
const LONGEST = 65_536;

type ReadSubscription = Pick<SubscriptionRequest, 'body' | 'parameters' | 'intervalMs' | 'since'>;

/** @param leastMs shortest interval that the server allows @throws QueryError E0511, E0513 */
export function readSubscription(request: FastifyRequest, leastMs: number): ReadSubscription {
  if (request.body instanceof Buffer && request.body.length > LONGEST)
    throw queryError('tooLarge', { what: 'the length of a subscription', limit: LONGEST });
  const { kind, read } = readOne(jsonFields(request));
  const { interval } = read;
  if (interval !== undefined && interval * 1_000 < leastMs)
    throw malformed(`\`interval\` is at least ${leastMs / 1_000} here`).about('/interval');
  const intervalMs = interval === undefined ? Math.max(DEFAULT_MS, leastMs) : interval * 1_000;
  const since = lastEventOf(request.headers['last-event-id']);
  const common = { intervalMs, since };
  if (kind === 'metrics')
    return { body: { kind, request: metricsRequestOf(read) }, parameters: [], ...common };
  if (kind === 'entity') {
    const name = identifier(unqualifiedName('entities', read.entity));
    return { body: { kind: 'osql', text: `select * from osl.entities.${name}` }, parameters: [], ...common };
  }
  const body = kind === 'osql' ? { kind, text: read.osql } : { kind, text: read.sql };
  return { body, parameters: boundParameters(read.parameters ?? []), ...common };
}

/** Reads `Last-Event-ID`. Text that is no id of this server matches no answer, so the client hears of a change. */
function lastEventOf(header: string | readonly string[] | undefined): EventId | null {
  if (header === undefined || header === '') return null;
  const [, number, answer] = /^(\d{1,9})\.([\w-]{22})$/.exec(`${header}`) ?? [];
  return { number: Number(number ?? 0), answer: answer ?? '' };
}

export function eventIdText({ number, answer }: EventId): string {
  return `${number}.${answer}`;
}
