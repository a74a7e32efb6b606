import type { Told } from '../rest/openapi/document.js';
import { BEARER, json, operation } from '../rest/openapi/operations.js';
import { ANY_CALL, refusals } from '../rest/openapi/refusals.js';
import { PROBLEM } from '../rest/problem.js';
import { count, flag, list, object, oneOf, orNull, type Shape, text, textOrNull } from '../rest/shape.js';
import { REVOCATIONS } from './revocation-body.js';

const REQUEST_ID = text('The call in the audit log.');
const PROCESS = text('`server`, or `worker 2`.');

const SESSION = object({
  id: text('By which it is cancelled or ended.'),
  process: PROCESS,
  surface: oneOf('wire', 'rest', 'mcp'),
  user: textOrNull('The login of the wire.'),
  subject: textOrNull('Who asks; null where nobody has proved it yet.'),
  chain: list(text()),
  token_id: textOrNull('By which the token that it goes on under is revoked.'),
  application: textOrNull(),
  since: text('RFC 3339.'),
  state: text('As `pg_stat_activity` has it.'),
  state_since: text(),
  shape: textOrNull('What runs, without literals and undeclared names.'),
  fingerprint: textOrNull('Of the shape.'),
  objects: list(text()),
});

const POOL = object({
  process: PROCESS,
  connector: text(),
  purpose: oneOf('questions', 'short', 'system'),
  size: count(),
  open: count(),
  running: count(),
  waiting: count(),
  reach: oneOf('open', 'full', 'lost'),
});

const CACHE = object({
  process: PROCESS,
  cache: text(),
  entries: count(),
  bytes: count(),
  hits: count(),
  misses: count(),
});

const PROCESS_VIEW = object({
  process: PROCESS,
  pid: count(),
  since: text(),
  draining: flag('It takes no new sessions, and is not ready.'),
  manifest: text(),
  policy: textOrNull('Null: none serves.'),
  policy_kept_until: textOrNull(
    'The newest policy is missing or invalid, and the last valid one serves until then.',
  ),
  policy_fault: textOrNull('What is wrong with the newest policy, and where; null while it serves.'),
  audit: object({
    records: count(),
    waiting: count('Not on the disk yet.'),
    unanchored: count('Not under a signed checkpoint yet.'),
    failing: textOrNull(),
  }),
  sessions: count(),
  out_of_service: list(text()),
});

const REVOCATION = {
  id: text(),
  kind: oneOf('token', 'subject'),
  name: text('The id of a token, or a subject.'),
  at: text('RFC 3339. Of a subject, tokens that were issued by then.'),
  until: text('From then on all of them have ended by themselves.'),
};

function shown(operationId: string, summary: string, member: string, of: Shape) {
  return operation({
    operationId,
    summary,
    tags: ['admin'],
    security: BEARER,
    response: {
      200: json(object({ request_id: REQUEST_ID, [member]: list(of) }), summary),
      ...refusals(...ANY_CALL, 'operatorsOnly'),
    },
  });
}

function done(operationId: string, summary: string, more: readonly 'noSession'[] = []) {
  return operation({
    operationId,
    summary,
    tags: ['admin'],
    security: BEARER,
    response: {
      200: json(object({ request_id: REQUEST_ID, done: text() }), 'It is done.'),
      ...refusals(...ANY_CALL, 'operatorsOnly', ...more),
    },
  });
}

export const OPERATIONS = Object.freeze({
  standing: shown('standing', 'How each process of the server stands', 'processes', PROCESS_VIEW),
  sessions: shown(
    'sessions',
    'Sessions of the wire, and requests that are being answered',
    'sessions',
    SESSION,
  ),
  pools: shown('pools', 'Sessions with the databases', 'pools', POOL),
  caches: shown('caches', 'What is kept of questions', 'caches', CACHE),
  cancel: done('cancelSession', 'Cancel what a session or a request runs', ['noSession']),
  end: done('endSession', 'End a session, or a request', ['noSession']),
  drain: done('drain', 'Take no new sessions, and be not ready'),
  resume: done('resume', 'Take sessions again'),
  reload: operation({
    operationId: 'reload',
    summary: 'Read manifest, policy, keys and credentials anew, as SIGHUP does',
    tags: ['admin'],
    security: BEARER,
    response: {
      200: json(
        {
          oneOf: [
            object({
              request_id: REQUEST_ID,
              reloaded: { type: 'boolean', enum: [true] },
              now: list(text()),
              kept: list(text()),
            }),
            object({ request_id: REQUEST_ID, reloaded: { type: 'boolean', enum: [false] }, why: text() }),
          ],
        },
        'What serves now, or why nothing changed.',
      ),
      ...refusals(...ANY_CALL, 'operatorsOnly'),
    },
  }),
  revoke: operation({
    operationId: 'revokeToken',
    summary: 'Revoke a token, that of a session, or all of a subject',
    tags: ['admin'],
    security: BEARER,
    body: { content: { 'application/json': { schema: { oneOf: Object.values(REVOCATIONS) } } } },
    response: {
      200: json(
        object({
          request_id: REQUEST_ID,
          ...REVOCATION,
          shared: orNull(flag('Other gateways know it; null where there are none.')),
        }),
        'It is revoked.',
      ),
      ...refusals(...ANY_CALL, 'body', 'operatorsOnly', 'noSession'),
    },
  }),
  revoked: shown(
    'revokedTokens',
    'What is revoked, and has not ended by itself',
    'revoked',
    object(REVOCATION),
  ),
  shutdown: done('shutdown', 'End the server, as SIGTERM does'),
});

/** Of the document of the admin listener. */
export const TOLD: Told = {
  title: 'OSL Gateway, for who runs it',
  description: 'Sessions, pools, caches, and how the server stands. It takes an admin role.',
  components: new Map<string, Shape>([['Problem', PROBLEM]]),
};
