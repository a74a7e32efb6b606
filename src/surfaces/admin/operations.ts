import { SPAN_NAMES } from '../../ask/operating/history/history.js';
import { GROUPINGS } from '../../ask/operating/history/view.js';
import { MOST_ROWS, MOST_SUBJECTS } from '../../ask/why/matrix.js';
import type { DocumentInfo } from '../rest/openapi/document.js';
import { BEARER, json, operation } from '../rest/openapi/operations.js';
import { ANY_CALL, refusals } from '../rest/openapi/refusals.js';
import { flag, type JsonShape, list, object, oneOf, orNull, ref, text } from '../rest/shape.js';
import { ACCESS_REQUESTS, ADMIN_COMPONENTS, REQUEST_ID, REVOCATION } from './components.js';
import { DECISIONS, KINDS, OUTCOMES, REVOCATIONS, SHADOW_REQUEST, SURFACES } from './requests.js';

type AdminRefusal = 'auditUnreadable' | 'body' | 'noSession' | 'notFound' | 'shadowRefused';

/** OpenAPI operation of an admin route; `answer` is the schema of its 200 response. */
function adminOperation(
  operationId: string,
  summary: string,
  answer: JsonShape,
  parameters: Readonly<Record<string, JsonShape>> = {},
  refusalNames: readonly AdminRefusal[] = [],
  body: Readonly<Record<string, unknown>> = {},
) {
  return operation({
    operationId,
    summary,
    tags: ['admin'],
    security: BEARER,
    ...body,
    ...(Object.keys(parameters).length > 0 && { querystring: { type: 'object', properties: parameters } }),
    response: { 200: json(answer, summary), ...refusals(...ANY_CALL, 'operatorsOnly', ...refusalNames) },
  });
}

function listOperation(operationId: string, summary: string, member: string, element: JsonShape) {
  return adminOperation(operationId, summary, object({ request_id: REQUEST_ID, [member]: list(element) }));
}

function commandOperation(operationId: string, summary: string, refusalNames: readonly AdminRefusal[] = []) {
  return adminOperation(
    operationId,
    summary,
    object({ request_id: REQUEST_ID, done: text() }),
    {},
    refusalNames,
  );
}

export const OPERATIONS = Object.freeze({
  standing: listOperation('standing', 'State of each process of the server', 'processes', ref('ProcessView')),
  sessions: listOperation(
    'sessions',
    'Open Postgres sessions and running HTTP requests',
    'sessions',
    ref('SessionView'),
  ),
  pools: listOperation('pools', 'Connection pools of the databases', 'pools', ref('PoolView')),
  caches: listOperation('caches', 'Use of the plan cache and of the fast path', 'caches', ref('CacheView')),
  history: adminOperation(
    'history',
    'Queries, errors, latency, pools, audit lag, memory and sessions over the last hour or day',
    ref('History'),
    { span: oneOf(...SPAN_NAMES), by: oneOf(...GROUPINGS) },
  ),
  historyStatements: adminOperation(
    'historyStatements',
    'Slowest statements of each minute in a period of up to an hour of the last day, without literals, slowest first',
    object({ request_id: REQUEST_ID, statements: list(ref('SlowStatement')) }),
    {
      from: text('Start of the first minute, RFC 3339. Default: the current minute.'),
      until: text(
        'End of the last minute, RFC 3339, at most an hour after `from`. Default: one minute after `from`.',
      ),
    },
  ),
  cancel: commandOperation('cancelSession', 'Cancel the running statement of a session or a request', [
    'noSession',
  ]),
  end: commandOperation('endSession', 'End a session or a request', ['noSession']),
  drain: commandOperation('drain', 'Stop accepting new sessions, and report not ready'),
  resume: commandOperation('resume', 'Accept new sessions again'),
  reload: adminOperation('reload', 'Reload manifest, policy, keys and credentials, as SIGHUP does', {
    oneOf: [
      object({
        request_id: REQUEST_ID,
        reloaded: { type: 'boolean', enum: [true] },
        now: list(text()),
        kept: list(text()),
      }),
      object({ request_id: REQUEST_ID, reloaded: { type: 'boolean', enum: [false] }, why: text() }),
    ],
  }),
  revoke: adminOperation(
    'revokeToken',
    'Revoke a token, the token of a session, or all tokens of a subject',
    object({
      request_id: REQUEST_ID,
      ...REVOCATION,
      shared: orNull(
        flag('False if other gateways have not been notified yet; null if there are no other gateways.'),
      ),
    }),
    {},
    ['body', 'noSession'],
    { body: { content: { 'application/json': { schema: { oneOf: Object.values(REVOCATIONS) } } } } },
  ),
  revoked: listOperation(
    'revokedTokens',
    'Revocations of tokens that have not expired',
    'revoked',
    object(REVOCATION),
  ),
  startShadow: adminOperation(
    'startShadowPolicy',
    'Start comparing a policy with the served one on the queries of this server, without serving it',
    ref('ShadowView'),
    {},
    ['body', 'shadowRefused'],
    { body: { content: { 'application/json': { schema: SHADOW_REQUEST } } } },
  ),
  stopShadow: adminOperation(
    'stopShadowPolicy',
    'Stop the policy comparison and return its last report',
    ref('ShadowView'),
  ),
  shutdown: commandOperation('shutdown', 'Shut down the server, as SIGTERM does'),
});

const PAGE_CURSOR = text('Value of `next` of the previous page.');

export const INSIGHT_OPERATIONS = Object.freeze({
  matrix: adminOperation('matrix', 'Access of each subject of the policy to each column', ref('MatrixPage'), {
    subject: text('Only subjects whose name contains this text, ignoring case.'),
    object: text('Only columns whose full name contains this text, ignoring case.'),
    sees: text(
      'Visibilities, separated by commas: only subjects who have one of them for a column of the page.',
    ),
    after: text('Only subjects whose name sorts after this one: `next_subject` of the previous page.'),
    subjects: text(`Maximum number of subjects, from 1 to ${MOST_SUBJECTS}. Default: ${MOST_SUBJECTS}.`),
    from: text('Index of the first row, starting at 0.'),
    rows: text(`Maximum number of rows, from 1 to ${MOST_ROWS}. Default: ${MOST_ROWS}.`),
    chain: text('Additional delegation chain, listed first: subjects separated by commas, root first.'),
  }),
  accessRequests: adminOperation(
    'accessRequests',
    'Access requests, with the roles and the grant that would give access now',
    ACCESS_REQUESTS,
    { from: PAGE_CURSOR },
    ['auditUnreadable'],
  ),
  auditRecords: adminOperation(
    'auditRecords',
    'Records of the audit log, newest first',
    ref('RecordPage'),
    {
      subject: text('Only records with this subject, or with it in their chain.'),
      object: text('Only records of requests for this object, such as `osl.entities.order` or `order`.'),
      name: text('Only records of requests that contain this undeclared name.'),
      since: text('Only records of this time or later, RFC 3339.'),
      until: text('Only records before this time, RFC 3339.'),
      kind: oneOf(...KINDS),
      action: text(),
      surface: oneOf(...SURFACES),
      decision: oneOf(...DECISIONS),
      outcome: oneOf(...OUTCOMES),
      code: text(),
      request: text('Only records of the request with this ID.'),
      from: PAGE_CURSOR,
      most: text('Maximum number of records, from 1 to 200. Default: 50.'),
    },
    ['auditUnreadable'],
  ),
  auditRequest: adminOperation(
    'auditRequest',
    'All records of one request, oldest first',
    ref('RecordPage'),
    {
      near: text(
        'Time, RFC 3339: only records within two days before or after it are searched, which is faster.',
      ),
    },
    ['auditUnreadable', 'notFound'],
  ),
  auditProofs: adminOperation(
    'auditProofs',
    'Proofs of the records of one request, as `osl audit prove` writes them',
    object({
      request_id: REQUEST_ID,
      proofs: list(ref('RecordProof'), 'Proofs of the records that the newest signed checkpoint covers.'),
    }),
    {},
    ['auditUnreadable', 'notFound'],
  ),
  verification: adminOperation(
    'auditVerification',
    'State and result of the last verification of the audit log',
    ref('VerificationJob'),
  ),
  verify: adminOperation(
    'verifyAudit',
    'Start a verification of the audit log, unless one is running',
    ref('VerificationJob'),
  ),
  policyTests: adminOperation(
    'policyTests',
    'State and result of the last run of the policy tests',
    ref('PolicyTestsJob'),
  ),
  testPolicy: adminOperation(
    'testPolicy',
    'Start the policy tests stored next to the policy, unless they are running',
    ref('PolicyTestsJob'),
  ),
  shadow: adminOperation(
    'shadowPolicy',
    'Report on the shadow policy: the changes it would make',
    ref('ShadowView'),
  ),
  figures: adminOperation(
    'figures',
    'Statistics of all processes since the start, from the metrics in `/metrics`',
    ref('Figures'),
  ),
  limits: adminOperation('limits', 'Limits of the policy, and their current use', ref('Limits'), {
    subject: text('Also report how much of the quotas this subject, acting for itself, has used.'),
    chain: text(
      'Also report how much of the quotas this chain has used, instead of `subject`: subjects separated by commas, root first.',
    ),
    task: text('Also report how much of the quotas per task this task has used.'),
  }),
  freshness: adminOperation(
    'freshness',
    'Age of indexes and rollups, and the versions being served',
    ref('Freshness'),
  ),
});

export const ADMIN_DOCUMENT: DocumentInfo = {
  title: 'OSL Gateway administration',
  description:
    'State and control of the server: processes, sessions, policy, limits and audit log. Requires an admin role.',
  components: ADMIN_COMPONENTS,
};
