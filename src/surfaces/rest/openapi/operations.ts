import type { FastifySchema } from 'fastify';
import { SCHEMA_PARTS } from '../parameters.js';
import { type JsonShape, list, object, oneOf, ref, text } from '../shape.js';
import { ANY_CALL, QUESTION, refusals } from './refusals.js';

/** OpenAPI operations of the routes. They are documentation only: routes read their requests themselves. */

export function json(
  schema: JsonShape,
  description: string,
  alternatives: Readonly<Record<string, JsonShape>> = {},
) {
  const alternativeContent = Object.entries(alternatives).map(
    ([type, shape]) => [type, { schema: shape }] as const,
  );
  return {
    description,
    content: { 'application/json': { schema }, ...Object.fromEntries(alternativeContent) },
  };
}

export const BEARER = [{ bearer: [] }] as const;
const NOT_MODIFIED = { description: 'The client’s copy is current.', type: 'null' } as const;
const GOVERNED_PARAMETER = {
  type: 'object',
  properties: {
    governed: {
      ...oneOf('true', 'false'),
      description:
        '`true`: only objects visible through the caller’s grants. Default: `false`, all objects, which requires an admin role.',
      examples: ['true'],
    },
  },
} as const;
const SCHEMA_QUERY = {
  type: 'object',
  properties: {
    ...GOVERNED_PARAMETER.properties,
    names: text(
      'Names, separated by commas, of the objects to return. Members that are null, empty or have their default value are left out.',
    ),
    parts: text(`Lists to return, separated by commas: ${SCHEMA_PARTS.join(', ')}.`),
    index: {
      ...oneOf('true', 'false'),
      description: '`true`: return a page of an index with a short entry for each object.',
    },
    from: text('Start of a page of the index: `next` of the previous page.'),
  },
} as const;
const QUERY_HEADERS = {
  type: 'object',
  properties: {
    prefer: text(
      '`receipt`: return a receipt of the answer. `receipt=multiset`: return a receipt that does not depend on the order of the rows.',
    ),
    'osl-purpose': text('Purpose of the request, percent-encoded. The policy must allow it for the caller.'),
    'osl-task': text(
      'Task that the request is part of, for limits per task: 1 to 200 characters, percent-encoded. The claim `osl_task` of the token takes precedence.',
    ),
    'osl-approval-reason': text(
      'Reason, percent-encoded, for requesting an approval if the query needs one (E0535).',
    ),
    'osl-break-glass': text(
      'Reason for break-glass access, percent-encoded. It is recorded, raises an alarm, and activates the access for a limited time.',
    ),
  },
} as const;
const ETAG_HEADER = {
  type: 'object',
  properties: { 'if-none-match': text('ETag of the client’s copy.') },
} as const;

export function operation(schema: Readonly<Record<string, unknown>>): FastifySchema {
  return schema as FastifySchema; // cast: includes members that the OpenAPI generator reads
}

const ARROW = {
  type: 'string',
  format: 'binary',
  description: 'Arrow IPC stream: record batches, then an empty batch with `osl.trailer` in its metadata.',
} as const;

export const QUERY_OPERATION = operation({
  operationId: 'query',
  summary: 'Run a query',
  description:
    'Returns rows, or the plan if `explain` is true. With `Accept: application/x-ndjson`, streams one row per line; with `application/vnd.apache.arrow.stream`, Arrow record batches.',
  tags: ['questions'],
  security: BEARER,
  headers: QUERY_HEADERS,
  body: { content: { 'application/json': { schema: ref('Query') } } },
  response: {
    200: json({ oneOf: [ref('Answer'), ref('Plan')] }, 'Rows, or a plan.', {
      'application/x-ndjson': text('One row per line, then a line `{"trailer": …}` with the other members.'),
      'application/vnd.apache.arrow.stream': ARROW,
    }),
    ...refusals(...ANY_CALL, 'body', ...QUESTION, 'encoding', 'upstream'),
  },
});

export const SUBSCRIBE_OPERATION = operation({
  operationId: 'subscribe',
  summary: 'Receive an event when the answer of a query changes',
  description:
    'Runs the query as the caller at each interval, and sends an event when its answer has changed. No rows are sent.',
  tags: ['questions'],
  security: BEARER,
  headers: {
    type: 'object',
    properties: {
      'last-event-id': text(
        'ID of the last event received. If the answer has changed since then, `changed` is sent at once.',
      ),
      'osl-purpose': QUERY_HEADERS.properties['osl-purpose'],
      'osl-break-glass': QUERY_HEADERS.properties['osl-break-glass'],
    },
  },
  body: { content: { 'application/json': { schema: ref('Subscription') } } },
  response: {
    200: {
      description:
        'Server-sent events: `ready` and `changed` with an ID and a `SubscriptionState` as data, `retrying` and `ended` with a problem as data.',
      content: { 'text/event-stream': { schema: text() } },
    },
    ...refusals(...ANY_CALL, 'body', ...QUESTION, 'subscription'),
  },
});

export const SAMPLE_OPERATION = operation({
  operationId: 'sample',
  summary: 'Return sample rows of an entity, or sample chunks of a facet',
  tags: ['questions'],
  security: BEARER,
  headers: QUERY_HEADERS,
  body: { content: { 'application/json': { schema: ref('SampleRequest') } } },
  response: {
    200: json(ref('Sample'), 'Sample rows or chunks.'),
    ...refusals(...ANY_CALL, 'body', 'sample', 'unknownFacet', 'denied', 'groupsOnly', 'running'),
  },
});

export const SCHEMA_OPERATION = operation({
  operationId: 'schema',
  summary: 'Schema for writing OSL-SQL: objects, functions, operators and examples',
  tags: ['graph'],
  security: BEARER,
  querystring: SCHEMA_QUERY,
  headers: ETAG_HEADER,
  response: {
    200: json(
      ref('Schema'),
      'The schema, with an ETag. With `names` or `parts`: the requested objects and `not_found`, without members that are null, empty or have their default value. With `index`: a page of `objects`, `next`, and the number of objects of each kind.',
    ),
    304: NOT_MODIFIED,
    ...refusals(...ANY_CALL, 'whole graph', 'unknownRelation'),
  },
});

export const MAP_OPERATION = operation({
  operationId: 'domainMap',
  summary: 'Domain graph: entities, metrics and the links between them',
  tags: ['graph'],
  security: BEARER,
  querystring: GOVERNED_PARAMETER,
  headers: ETAG_HEADER,
  response: {
    200: json(ref('DomainMap'), 'The graph, with an ETag.'),
    304: NOT_MODIFIED,
    ...refusals(...ANY_CALL, 'whole graph'),
  },
});

export const RESOLVE_OPERATION = operation({
  operationId: 'resolve',
  summary: 'Find the objects that a business term may refer to',
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
  summary: 'List database relations that the manifest does not use',
  description: 'Requires an admin role. Reads the databases’ catalogs, but no rows.',
  tags: ['authoring'],
  security: BEARER,
  response: {
    200: json(ref('Candidates'), 'Relations that no entity, bridge or facet uses.'),
    ...refusals(...ANY_CALL, 'authoring'),
  },
});

export const SUGGEST_OPERATION = operation({
  operationId: 'suggest',
  summary: 'Draft a manifest fragment',
  description: 'Requires an admin role. Nothing is stored. Sensitivity labels are never guessed.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('SuggestRequest') } } },
  response: {
    200: json(ref('Suggestion'), 'The draft, with any errors in it.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'unresolvable'),
  },
});

export const VALIDATE_OPERATION = operation({
  operationId: 'validate',
  summary: 'Validate a fragment or a manifest, and list the changes it would make',
  description:
    'Requires an admin role. Problems in the fragment or manifest are part of the answer, not an error. Nothing is stored except the state of a draft.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('ValidateRequest') } } },
  response: {
    200: json(ref('Judgement'), 'The problems found, or the changes that would be made.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'draft', 'notFound', 'unresolvable'),
  },
});

export const CONFORMANCE_OPERATION = operation({
  operationId: 'conformance',
  summary: 'Declared conformance levels',
  tags: ['service'],
  security: BEARER,
  response: {
    200: json(list(text()), 'Conformance levels of the contract that the server meets in full.'),
    ...refusals(...ANY_CALL),
  },
});

export const HEALTH_OPERATION = operation({
  operationId: 'health',
  summary: 'Liveness: the process responds and can write its audit log',
  tags: ['service'],
  response: {
    200: json(
      ref('Health'),
      'Alive. `degraded`: requests that need a service in `waiting_for` are refused, or the last valid policy is in force instead of the newest. With `audit_sync`, audit records are synced up to 50 ms after the answer, so a power failure may lose them.',
    ),
    503: json(
      object({ status: oneOf('failing'), audit: oneOf('disk', 'full', 'deadline', 'closed') }),
      'The audit log cannot be written, for the reason in `audit`; all other requests are refused.',
    ),
  },
});

export const READY_OPERATION = operation({
  operationId: 'ready',
  summary: 'Readiness: the service can answer queries',
  tags: ['service'],
  response: {
    200: json(ref('Readiness'), 'Ready.'),
    503: json(ref('Readiness'), 'Not ready: at least one check is false.'),
  },
});

/** Aliases at the paths that Kubernetes uses by convention. */
export const HEALTHZ_OPERATION = operation({ ...HEALTH_OPERATION, operationId: 'healthz' });
export const READYZ_OPERATION = operation({ ...READY_OPERATION, operationId: 'readyz' });

export const HIDDEN_OPERATION = operation({ hide: true });

export const WHY_OPERATION = operation({
  operationId: 'why',
  summary: 'Explain how the caller sees an object',
  tags: ['graph'],
  security: BEARER,
  querystring: {
    type: 'object',
    properties: {
      object: text(
        'An entity, bridge or facet, or one of its columns, such as `osl.entities.customer.email`.',
      ),
    },
    required: ['object'],
  },
  response: { 200: json(ref('Why'), 'The explanation.'), ...refusals(...ANY_CALL, ...QUESTION) },
});

export const REQUEST_ACCESS_OPERATION = operation({
  operationId: 'requestAccess',
  summary: 'Request access from the owner of the policy',
  description:
    'The request is recorded and, if `OSL_OWNER_WEBHOOK` is set, sent there with the roles and the grant that would give access. If a grant lacks only an approval, a request to its approvers is opened. The answer does not reveal whether the object exists.',
  tags: ['graph'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessRequest') } } },
  response: {
    200: json(ref('AccessRequested'), 'The request is recorded.'),
    ...refusals(...ANY_CALL, 'body', 'asking the owner', 'approvalsFull', 'approvalsUnavailable'),
  },
});

export const APPROVALS_OPERATION = operation({
  operationId: 'approvals',
  summary: 'List approval requests',
  description:
    'Requests that the caller may decide or has made, newest first. Callers with an admin role also get all others, without reasons and statements as written. A request is listed until it or its approval expires.',
  tags: ['graph'],
  security: BEARER,
  response: {
    200: json(ref('ApprovalList'), 'The requests.'),
    ...refusals(...ANY_CALL, 'approvalsUnavailable'),
  },
});

export const DECIDE_APPROVAL_OPERATION = operation({
  operationId: 'decideApproval',
  summary: 'Approve or decline a request, or end an approval',
  description:
    'Requires every role that the grants name in `approval`. The caller must not be in the chain of the request, nor act on behalf of others. The decision is recorded before it takes effect.',
  tags: ['graph'],
  security: BEARER,
  params: {
    type: 'object',
    properties: { id: text('ID of the approval request.') },
    required: ['id'],
  },
  body: { content: { 'application/json': { schema: ref('ApprovalVerdict') } } },
  response: {
    200: json(ref('ApprovalDecided'), 'The decision, now in effect.'),
    ...refusals(...ANY_CALL, 'body', 'approval', 'wrongState'),
  },
});

export const EXPLAIN_ACCESS_OPERATION = operation({
  operationId: 'explainAccess',
  summary: 'Explain how a hypothetical caller sees an object',
  description:
    'Requires an admin role. Reads data only to check whether the hypothetical caller sees the row in `row`.',
  tags: ['authoring'],
  security: BEARER,
  body: { content: { 'application/json': { schema: ref('AccessQuestion') } } },
  response: {
    200: json(ref('AccessExplanation'), 'The explanation.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', ...QUESTION),
  },
});

export const RECEIPT_OPERATION = operation({
  operationId: 'receipt',
  summary: 'Return the receipt of an earlier answer',
  description:
    'For the caller who received the answer, and for admin roles. The proof refers to the newest stored checkpoint. The salt is not included, since it is not in the log.',
  tags: ['questions'],
  security: BEARER,
  params: {
    type: 'object',
    properties: { request_id: text('ID of the request whose receipt is returned.') },
    required: ['request_id'],
  },
  response: {
    200: json(ref('RecordedReceipt'), 'The receipt.'),
    ...refusals(...ANY_CALL, 'malformedBody', 'receipt', 'auditUnreadable'),
  },
});

export const DASHBOARDS_OPERATION = operation({
  operationId: 'dashboards',
  summary: 'List shared dashboards',
  description:
    'Dashboards in OSL_DASHBOARDS that are shared with a role of the caller. They contain metrics queries, but no values.',
  tags: ['graph'],
  security: BEARER,
  response: {
    200: json(ref('DashboardList'), 'The dashboards, sorted by title.'),
    ...refusals(...ANY_CALL, 'malformedBody'),
  },
});

export const PUBLISH_OPERATION = operation({
  operationId: 'publish',
  summary: 'Publish, deprecate, withdraw or roll back objects',
  description:
    'Requires an admin role. The change is validated again and becomes a new, immutable version, which is served in full or not at all. Connectors, policy, endpoints and allowlists cannot be changed.',
  tags: ['authoring'],
  security: BEARER,
  headers: {
    type: 'object',
    properties: { 'if-match': text('Manifest version on which the change is based, in quotes.') },
  },
  body: { content: { 'application/json': { schema: ref('ObjectsRequest') } } },
  response: {
    200: json(ref('Publication'), 'A draft was stored or deleted, or everything was already published.'),
    201: json(ref('Publication'), 'A new version is served.'),
    ...refusals(...ANY_CALL, 'body', 'authoring', 'draft', 'publishing', 'notFound'),
    422: {
      description:
        'The result could not be served (E1002, with `diagnostics`), or there is no such object, draft or version (E1001).',
      content: { 'application/problem+json': { schema: ref('Unservable') } },
    },
  },
});

export const OBJECTS_OPERATION = operation({
  operationId: 'publications',
  summary: 'Published objects, their history, and drafts',
  tags: ['authoring'],
  security: BEARER,
  response: {
    200: json(ref('Publications'), 'The published objects. The ETag is the manifest version being served.'),
    ...refusals(...ANY_CALL, 'authoring'),
  },
});

export const OBJECT_OPERATION = operation({
  operationId: 'publication',
  summary: 'A published version, or a draft',
  tags: ['authoring'],
  security: BEARER,
  params: {
    type: 'object',
    properties: { id: text('Number or ID of a version, or ID of a draft.') },
    required: ['id'],
  },
  response: {
    200: json(ref('Published'), 'The version or draft.'),
    ...refusals(...ANY_CALL, 'authoring', 'notFound'),
  },
});

export type MethodOperations = Readonly<Partial<Record<'GET' | 'POST', FastifySchema>>>;
export type Routes = readonly (readonly [path: string, operations: MethodOperations])[];

export const REST_ROUTES: Routes = [
  ['/osl/query', { POST: QUERY_OPERATION }],
  ['/osl/subscribe', { POST: SUBSCRIBE_OPERATION }],
  ['/osl/sample', { POST: SAMPLE_OPERATION }],
  ['/osl/schema', { GET: SCHEMA_OPERATION }],
  ['/osl/schema/resolve', { GET: RESOLVE_OPERATION }],
  ['/osl/domain-map', { GET: MAP_OPERATION }],
  ['/osl/why', { GET: WHY_OPERATION }],
  ['/osl/access-requests', { POST: REQUEST_ACCESS_OPERATION }],
  ['/osl/approvals', { GET: APPROVALS_OPERATION }],
  ['/osl/approvals/{id}', { POST: DECIDE_APPROVAL_OPERATION }],
  ['/osl/access/explain', { POST: EXPLAIN_ACCESS_OPERATION }],
  ['/osl/candidates', { GET: CANDIDATES_OPERATION }],
  ['/osl/suggest', { POST: SUGGEST_OPERATION }],
  ['/osl/validate', { POST: VALIDATE_OPERATION }],
  ['/osl/objects', { GET: OBJECTS_OPERATION, POST: PUBLISH_OPERATION }],
  ['/osl/objects/{id}', { GET: OBJECT_OPERATION }],
  ['/osl/receipts/{request_id}', { GET: RECEIPT_OPERATION }],
  ['/osl/dashboards', { GET: DASHBOARDS_OPERATION }],
  ['/osl/conformance', { GET: CONFORMANCE_OPERATION }],
  ['/health', { GET: HEALTH_OPERATION }],
  ['/healthz', { GET: HEALTHZ_OPERATION }],
  ['/ready', { GET: READY_OPERATION }],
  ['/readyz', { GET: READYZ_OPERATION }],
];
