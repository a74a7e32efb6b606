import { MOST_ROWS, MOST_SUBJECTS } from '../../ask/why/matrix.js';
import type { DocumentInfo } from '../rest/openapi/document.js';
import { BEARER, json, operation } from '../rest/openapi/operations.js';
import { ANY_CALL, refusals } from '../rest/openapi/refusals.js';
import { flag, type JsonShape, list, object, oneOf, orNull, ref, text } from '../rest/shape.js';
import { ACCESS_REQUESTS, ADMIN_COMPONENTS, REQUEST_ID, REVOCATION } from './components.js';
import { DECISIONS, KINDS, OUTCOMES, REVOCATIONS, SURFACES } from './requests.js';

type AdminRefusal = 'auditUnreadable' | 'body' | 'noSession' | 'notFound';

/** OpenAPI operation of an admin route; `answer` is the schema of its 200 response. */
function adminOperation(
  operationId: string,
  summary: string,
  answer: JsonShape,
  parameters: Readonly<Record<string, JsonShape>> = {},
  more: readonly AdminRefusal[] = [],
  body: Readonly<Record<string, unknown>> = {},
) {
  return operation({
    operationId,
    summary,
    tags: ['admin'],
    security: BEARER,
    ...body,
    ...(Object.keys(parameters).length > 0 && { querystring: { type: 'object', properties: parameters } }),
    response: { 200: json(answer, summary), ...refusals(...ANY_CALL, 'operatorsOnly', ...more) },
  });
}

function listOperation(operationId: string, summary: string, member: string, element: JsonShape) {
  return adminOperation(operationId, summary, object({ request_id: REQUEST_ID, [member]: list(element) }));
}

function commandOperation(operationId: string, summary: string, more: readonly AdminRefusal[] = []) {
  return adminOperation(operationId, summary, object({ request_id: REQUEST_ID, done: text() }), {}, more);
}

export const OPERATIONS = Object.freeze({
  standing: listOperation('standing', 'State of each process of the server', 'processes', ref('ProcessView')),
  sessions: listOperation(
    'sessions',
    'Sessions of the wire, and requests that are being answered',
    'sessions',
    ref('SessionView'),
  ),
  pools: listOperation('pools', 'Sessions with the databases', 'pools', ref('PoolView')),
  caches: listOperation('caches', 'Caches of plans, schemas and answers', 'caches', ref('CacheView')),
  cancel: commandOperation('cancelSession', 'Cancel the running statement of a session or a request', [
    'noSession',
  ]),
  end: commandOperation('endSession', 'End a session, or a request', ['noSession']),
  drain: commandOperation('drain', 'Take no new sessions, and be not ready'),
  resume: commandOperation('resume', 'Take sessions again'),
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
    'Revoke a token, that of a session, or all of a subject',
    object({
      request_id: REQUEST_ID,
      ...REVOCATION,
      shared: orNull(flag('Other gateways know it; null where there are none.')),
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
  shutdown: commandOperation('shutdown', 'End the server, as SIGTERM does'),
});

const FROM = text('`next` of the page before.');

export const INSIGHT_OPERATIONS = Object.freeze({
  matrix: adminOperation('matrix', 'Access of each subject of the policy to each column', ref('MatrixPage'), {
    subject: text('A part of its name.'),
    object: text('A part of the full name of a column.'),
    sees: text('Only subjects who see one of the rows in one of these ways, separated by commas.'),
    after: text('Subjects after this one.'),
    subjects: text(`How many, ${MOST_SUBJECTS} at most.`),
    from: text('The first row, from 0.'),
    rows: text(`How many, ${MOST_ROWS} at most.`),
    chain: text('One more chain: subjects separated by commas, root first.'),
  }),
  accessRequests: adminOperation(
    'accessRequests',
    'Requests for access, and what could be granted now',
    ACCESS_REQUESTS,
    { from: FROM },
    ['auditUnreadable'],
  ),
  auditRecords: adminOperation(
    'auditRecords',
    'Records of the audit log, newest first',
    ref('RecordPage'),
    {
      subject: text('The subject of a record, or one in its chain.'),
      object: text('An object that was touched: `osl.entities.order`, or `order`.'),
      name: text('A requested name that is declared nowhere.'),
      since: text('A time: records from here …'),
      until: text('… to before here.'),
      kind: oneOf(...KINDS),
      action: text(),
      surface: oneOf(...SURFACES),
      decision: oneOf(...DECISIONS),
      outcome: oneOf(...OUTCOMES),
      code: text(),
      request: text('The id of a request.'),
      from: FROM,
      most: text('How many; 50 by default, 200 at most.'),
    },
    ['auditUnreadable'],
  ),
  auditRequest: adminOperation(
    'auditRequest',
    'All records of one request, in their order',
    ref('RecordPage'),
    { near: text('A time: only the two days around it are read, which is quicker.') },
    ['auditUnreadable', 'notFound'],
  ),
  auditProofs: adminOperation(
    'auditProofs',
    'Proofs of the records of one request, as `osl audit prove` writes them',
    object({
      request_id: REQUEST_ID,
      proofs: list(ref('RecordProof'), 'Of those that the newest signed checkpoint covers.'),
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
    'Verify the audit log, unless that is running',
    ref('VerificationJob'),
  ),
  policyTests: adminOperation(
    'policyTests',
    'State and result of the last run of the policy tests',
    ref('PolicyTestsJob'),
  ),
  testPolicy: adminOperation(
    'testPolicy',
    'Run the tests that lie beside the policy, unless they are running',
    ref('PolicyTestsJob'),
  ),
  figures: adminOperation(
    'figures',
    'Figures of all processes since the start, as `/metrics` counts them',
    ref('Figures'),
  ),
  limits: adminOperation('limits', 'The limits of the policy, and how much of them is used', ref('Limits'), {
    subject: text('Also report the limits of this subject.'),
  }),
  freshness: adminOperation(
    'freshness',
    'Age of indexes and rollups, and the versions that are served',
    ref('Freshness'),
  ),
});

export const ADMIN_DOCUMENT: DocumentInfo = {
  title: 'OSL Gateway, for who runs it',
  description: 'Sessions, pools, caches, and the state of the server. It takes an admin role.',
  components: ADMIN_COMPONENTS,
};
