import type { FastifySchema } from 'fastify';
import { SCHEMA_PARTS } from '../parameters.js';
import { count, type JsonShape, list, object, oneOf, ref, text } from '../shape.js';
import { ANY_CALL, QUESTION, refusals } from './refusals.js';

/** OpenAPI operations of the routes. They are documentation only: routes read their requests themselves. */

export function json(schema: JsonShape, description: string, more: Readonly<Record<string, JsonShape>> = {}) {
  const others = Object.entries(more).map(([type, shape]) => [type, { schema: shape }] as const);
  return { description, content: { 'application/json': { schema }, ...Object.fromEntries(others) } };
}

export const BEARER = [{ bearer: [] }] as const;
const NOT_MODIFIED = { description: 'What the client has is still so.', type: 'null' } as const;
const GOVERNED = {
  type: 'object',
  properties: {
    governed: {
      ...oneOf('true', 'false'),
      description: '`true`: what the grants show. Otherwise all of it, which takes an admin role.',
      examples: ['true'],
    },
  },
} as const;
const PART_OF_SCHEMA = {
  type: 'object',
  properties: {
    ...GOVERNED.properties,
    names: text('Only what has one of these names, with commas; of what is usual nothing is said.'),
    parts: text(`Only these lists, with commas: ${SCHEMA_PARTS.join(', ')}.`),
    index: { ...oneOf('true', 'false'), description: 'A page of what there is, a line of each.' },
    from: text('Of the index: `next` of the page before.'),
  },
} as const;
const QUERY_HEADERS = {
  type: 'object',
  properties: {
    'osl-purpose': text('What the question is for, percent-encoded, among the purposes that policy allows.'),
    'osl-break-glass': text(
      'Why the caller breaks the glass, percent-encoded: on record, alarmed, and for a while.',
    ),
  },
} as const;
const ETAG_HEADER = {
  type: 'object',
  properties: { 'if-none-match': text('An ETag that the client has.') },
} as const;

export function operation(schema: Readonly<Record<string, unknown>>): FastifySchema {
  return schema as FastifySchema; // includes members that the OpenAPI generator reads
}

const ARROW = {
  type: 'string',
  format: 'binary',
  description: 'Record batches, then one without rows with `osl.trailer` in its metadata.',
} as const;

export const QUERY_OPERATION = operation({
  operationId: 'query',
  summary: 'Ask a question',
  description:
    'Rows, or with `explain: true` the plan. `Accept: application/x-ndjson` streams a row a line, `application/vnd.apache.arrow.stream` record batches.',
  tags: ['questions'],
  security: BEARER,
  headers: QUERY_HEADERS,
  body: { content: { 'application/json': { schema: ref('Query') } } },
  response: {
    200: json({ oneOf: [ref('Answer'), ref('Plan')] }, 'Rows, or a plan.', {
      'application/x-ndjson': text('A row a line, then `{"trailer": …}` with the other members.'),
      'application/vnd.apache.arrow.stream': ARROW,
    }),
    ...refusals(...ANY_CALL, 'body', ...QUESTION, 'encoding', 'upstream'),
  },
});

export const SAMPLE_OPERATION = operation({
  operationId: 'sample',
  summary: 'A few rows of an entity, or chunks of a facet',
  tags: ['questions'],
  security: BEARER,
  headers: QUERY_HEADERS,
  body: { content: { 'application/json': { schema: ref('SampleRequest') } } },
  response: {
    200: json(ref('Sample'), 'Rows.'),
    ...refusals(...ANY_CALL, 'body', 'sample', 'unknownFacet', 'denied', 'groupsOnly', 'running'),
  },
});

export const SCHEMA_OPERATION = operation({
  operationId: 'schema',
  summary: 'All that is needed to write OSL-SQL',
  tags: ['graph'],
  security: BEARER,
  querystring: PART_OF_SCHEMA,
  headers: ETAG_HEADER,
  response: {
    200: json(
      ref('Schema'),
      'The schema, with an ETag. With `names` or `parts` the lists that have something of what was asked for, without members that are null, empty or usual, and `not_found`; with `index` a page of `objects`, `next`, and how many there are.',
    ),
    304: NOT_MODIFIED,
    ...refusals(...ANY_CALL, 'whole graph', 'unknownRelation'),
  },
});

export const MAP_OPERATION = operation({
  operationId: 'domainMap',
  summary: 'The domain graph',
  tags: ['graph'],
  security: BEARER,
  querystring: GOVERNED,
  headers: ETAG_HEADER,
  response: {
    200: json(ref('DomainMap'), 'The graph, with an ETag.'),
    304: NOT_MODIFIED,
    ...refusals(...ANY_CALL, 'whole graph'),
  },
});

export const RESOLVE_OPERATION = operation({
  operationId: 'resolve',
  summary: 'What a business word may mean',
  tags: ['graph'],
  security: BEARER,
  querystring: {
    type: 'object',
    properties: { term: { type: 'string', minLength: 1, maxLength: 200, examples: ['customer'] } },
    required: ['term'],
  },
  response: { 200: json(ref('Resolution'), 'Matches, best first.'), ...refusals(...ANY_CALL) },
});

export const CANDIDATES_OPERATION = operation({
  operationId: 'candidates',
  summary: 'What the databases hold beyond the manifest',
  description: 'For admins. Declarations only: no row is read.',
  tags: ['authoring'],
  security: BEARER,
  response: {
    200: json(ref('Candidates'), 'Relations that nothing rests on yet.'),
    ...refusals(...ANY_CALL, 'authoring'),
  },
});

export const SUGGEST_OPERATION = operation({
  operationId: 'suggest',
  summary: 'A draft of a manifest fragment',
  description: 'For admins. Nothing is stored, and nothing is guessed to be sensitive.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('SuggestRequest') } } },
  response: {
    200: json(ref('Suggestion'), 'The draft, and what stands against it.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'unresolvable'),
  },
});

export const VALIDATE_OPERATION = operation({
  operationId: 'validate',
  summary: 'What a fragment or a manifest would change',
  description:
    'For admins. What is wrong with it is an answer, not an error; nothing is stored but the state of a draft.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('ValidateRequest') } } },
  response: {
    200: json(ref('Judgement'), 'Diagnostics, or what would change.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'draft', 'notFound', 'unresolvable'),
  },
});

export const CONFORMANCE_OPERATION = operation({
  operationId: 'conformance',
  summary: 'The declared conformance levels',
  tags: ['service'],
  security: BEARER,
  response: {
    200: json(list(text()), 'Groups of the contract’s rules that are met in full.'),
    ...refusals(...ANY_CALL),
  },
});

const KEPT_POLICY = object(
  { since: text(), until: text(), seconds_left: count('Until then.') },
  'The newest policy is missing or invalid, and the last valid one serves until then.',
);

export const HEALTH_OPERATION = operation({
  operationId: 'health',
  summary: 'The process answers, and can record what it answers',
  tags: ['service'],
  response: {
    200: json(
      object({
        status: oneOf('ok', 'degraded'),
        'waiting_for?': list(oneOf('engines', 'policy', 'control', 'limits', 'issuers')),
        'kept_policy?': KEPT_POLICY,
      }),
      'It does. Degraded: questions that need what it waits for are refused, or the last valid policy serves.',
    ),
    503: json(
      object({ status: oneOf('failing'), audit: oneOf('disk', 'full', 'deadline', 'closed') }),
      'It answers, and refuses everything: why its audit log takes nothing.',
    ),
  },
});

const READINESS = object({
  status: oneOf('ready', 'not_ready'),
  checks: { type: 'object' },
  'objects_out_of_service?': count('Entities and bridges whose table or column is gone from the database.'),
  'data_nodes_unreachable?': count('Servers behind the databases, as of foreign tables, that do not answer.'),
  'kept_policy?': KEPT_POLICY,
});

export const READY_OPERATION = operation({
  operationId: 'ready',
  summary: 'The service can answer questions',
  tags: ['service'],
  response: { 200: json(READINESS, 'It can.'), 503: json(READINESS, 'It cannot.') },
});

/** Aliases at the paths that Kubernetes uses by convention. */
export const HEALTHZ_OPERATION = operation({ ...HEALTH_OPERATION, operationId: 'healthz' });
export const READYZ_OPERATION = operation({ ...READY_OPERATION, operationId: 'readyz' });

export const HIDDEN_OPERATION = operation({ hide: true });

export const WHY_OPERATION = operation({
  operationId: 'why',
  summary: 'Why the caller sees an object as it does',
  tags: ['graph'],
  security: BEARER,
  querystring: {
    type: 'object',
    properties: { object: text('An entity or facet, or a column of one: `osl.entities.customer.email`.') },
    required: ['object'],
  },
  response: { 200: json(ref('Why'), 'It.'), ...refusals(...ANY_CALL, ...QUESTION) },
});

export const REQUEST_ACCESS_OPERATION = operation({
  operationId: 'requestAccess',
  summary: 'Ask the owner of the policy for access',
  description:
    'On record, and where `OSL_OWNER_WEBHOOK` names a receiver, sent to it with what could be granted. The answer does not tell whether there is such an object.',
  tags: ['graph'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessRequest') } } },
  response: {
    200: json(ref('AccessRequested'), 'It is on record.'),
    ...refusals(...ANY_CALL, 'body', 'asking the owner'),
  },
});

export const EXPLAIN_ACCESS_OPERATION = operation({
  operationId: 'explainAccess',
  summary: 'Who sees what, and why',
  description:
    'For admins. Nothing of the data is read, but whether the row that `row` names is there for the subject.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessQuestion') } } },
  response: {
    200: json(ref('AccessExplanation'), 'It.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', ...QUESTION),
  },
});

export const PUBLISH_OPERATION = operation({
  operationId: 'publish',
  summary: 'Publish, deprecate, withdraw or roll back',
  description:
    'For admins. Validated again, then a new version that cannot be changed, served whole or not at all. It cannot change connectors, policy, endpoints or allowlists.',
  tags: ['authoring'],
  security: BEARER,
  headers: {
    type: 'object',
    properties: { 'if-match': text('The version that the change was made for, in quotes.') },
  },
  body: { content: { 'application/json': { schema: ref('ObjectsRequest') } } },
  response: {
    200: json(ref('Publication'), 'A draft was kept or discarded; or all of it was published already.'),
    201: json(ref('Publication'), 'A new version is served.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'draft', 'publishing', 'notFound'),
    422: {
      description:
        'It could not be served: E1002, with `diagnostics`; or there is nothing of that name: E1001.',
      content: { 'application/problem+json': { schema: ref('Unservable') } },
    },
  },
});

export const OBJECTS_OPERATION = operation({
  operationId: 'publications',
  summary: 'What is published, its history, and drafts',
  tags: ['authoring'],
  security: BEARER,
  response: {
    200: json(ref('Publications'), 'The ETag is the version that is served.'),
    ...refusals(...ANY_CALL, 'authoring'),
  },
});

export const OBJECT_OPERATION = operation({
  operationId: 'publication',
  summary: 'One version, or one draft',
  tags: ['authoring'],
  security: BEARER,
  params: {
    type: 'object',
    properties: { id: text('Number or id of a version, or id of a draft.') },
    required: ['id'],
  },
  response: { 200: json(ref('Published'), 'It.'), ...refusals(...ANY_CALL, 'authoring', 'notFound') },
});
