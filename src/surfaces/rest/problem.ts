import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERRORS, type QueryError } from 'osl-compiler';
import { count, either, type JsonShape, object, text, textOrNull, type ValueOf } from './shape.js';

/** Title for each error code. A test checks that none is missing. */
const TITLES: ReadonlyMap<string, string> = new Map([
  ['E0241', 'Facet not declared'],
  ['E0246', 'Empty sql'],
  ['E0254', 'Model not declared'],
  ['E0510', 'Execution failed'],
  ['E0511', 'Malformed or out of grammar'],
  ['E0512', 'Object not declared'],
  ['E0513', 'Mixed shapes'],
  ['E0514', 'Join not on a sealed key'],
  ['E0515', 'Key is masked'],
  ['E0516', 'Cancelled'],
  ['E0517', 'Timed out'],
  ['E0518', 'Too many rows'],
  ['E0519', 'Too many rows in a step'],
  ['E0521', 'No language model'],
  ['E0522', 'Content not ready'],
  ['E0523', 'Database down'],
  ['E0524', 'No permission in the database'],
  ['E0525', 'Missing in the database'],
  ['E0526', 'Type changed in the database'],
  ['E0527', 'Too costly'],
  ['E0530', 'Row too large'],
  ['E0528', 'Not supported by this database'],
  ['E0531', 'Not possible over distributed tables'],
  ['E0532', 'Task required'],
  ['E0533', 'Not subscribable'],
  ['E0534', 'Shadow policy not started'],
  ['E0536', 'Entities not countable'],
  ['E0537', 'Overlaps with earlier answers'],
  ['E0529', 'Invalid value in a computation'],
  ['E1001', 'Not resolvable'],
  ['E1002', 'Not servable'],
  ['E2001', 'No valid policy'],
  ['E2003', 'Ended by a change of rights'],
  ['E0535', 'Approval needed'],
  ['E2101', 'Denied by policy'],
  ['E2102', 'No access'],
  ['E2103', 'Aggregates only'],
  ['E2104', 'Invalid break-glass reason'],
  ['E3001', 'Invalid token'],
  ['E4030', 'Origin not allowed'],
  ['E4040', 'Not found'],
  ['E4050', 'Method not allowed'],
  ['E4060', 'Value not representable in this format'],
  ['E4090', 'Wrong state'],
  ['E4120', 'Base version is not current'],
  ['E4130', 'Body too large'],
  ['E4150', 'Media type not supported'],
  ['E4280', 'Base version missing'],
  ['E4290', 'Rate limit exceeded'],
  ['E5000', 'Internal error'],
  ['E5030', 'Audit log not available'],
  ['E5031', 'At capacity'],
  ['E5032', 'Shutting down'],
  ['E5033', "Issuer's keys not available"],
  ['E5034', 'Owner of the policy not reached'],
  ['E5036', 'Control database not available'],
  ['E5037', 'Audit log not readable'],
  ['E5038', 'Limits not known yet'],
  ['E5039', 'Not enough memory for the answer'],
]);

function titleOf(code: string): string {
  return TITLES.get(code) ?? 'Error';
}

export function hasTitle(code: string): boolean {
  return TITLES.has(code);
}

const CODES = [...new Set(Object.values(ERRORS).map((e) => e.code))].sort();
const NOTHING: JsonShape<null> = { type: 'null' };
const CODE: JsonShape<string> = { type: 'string', enum: CODES, 'x-extensible': true };
const STATUS: JsonShape<number> = { type: 'integer', minimum: 400, maximum: 599 };

/** Body of an error response (RFC 9457, `application/problem+json`). */
export const PROBLEM = object(
  {
    type: text('`urn:osl:error:<code>`'),
    title: text(),
    status: STATUS,
    code: CODE,
    sqlstate: text(undefined, { pattern: '^[0-9A-Z]{5}$' }),
    detail: text(),
    hint: textOrNull(),
    position: either(
      NOTHING,
      object(
        { offset: count(), line: count(), column: count() },
        'Position in the text of the request, in UTF-16 code units.',
      ),
    ),
    'pointer?': text('JSON Pointer to the member of the body at fault.'),
    request_id: text('ID of this request, also in the audit log.'),
  },
  'An error (RFC 9457).',
);
export type ProblemDocument = ValueOf<typeof PROBLEM>;

export function problemOf(error: QueryError, requestId: string): ProblemDocument {
  return {
    type: `urn:osl:error:${error.code}`,
    title: titleOf(error.code),
    status: error.http,
    code: error.code,
    sqlstate: error.sqlstate,
    detail: error.message,
    hint: error.hint,
    position: error.position,
    ...(error.pointer !== null && { pointer: error.pointer }),
    request_id: requestId,
  };
}

/** Headers of responses that must not be cached or shared. */
export function privateHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  };
}

const RETRY_AFTER_SECONDS = 5;

export function problemHeaders(error: QueryError, requestId: string): Record<string, string> {
  const headers = { ...privateHeaders(requestId), 'content-type': 'application/problem+json' };
  const challenge = challengeOf(error);
  if (challenge !== null) Object.assign(headers, { 'www-authenticate': challenge });
  if (error.http === 429 || error.http === 503) {
    Object.assign(headers, { 'retry-after': `${error.retryAfterSeconds ?? RETRY_AFTER_SECONDS}` });
  }
  return headers;
}

function challengeOf(error: QueryError): string | null {
  if (error.entry === 'missingToken') return 'Bearer';
  return error.http === 401 ? 'Bearer error="invalid_token"' : null;
}

export function sendProblem(
  reply: FastifyReply,
  error: QueryError,
  requestId: string,
  more: object = {},
): FastifyReply {
  // Sent as bytes, so that no serializer adds a charset, which JSON does not define.
  const body = Buffer.from(JSON.stringify({ ...problemOf(error, requestId), ...more }));
  return reply.code(error.http).headers(problemHeaders(error, requestId)).send(body);
}

/**
 * Builds a complete HTTP/1.1 response for a socket whose request could not be parsed; the connection is closed
 * afterwards.
 */
export function rawProblem(error: QueryError, requestId: string): string {
  const body = JSON.stringify(problemOf(error, requestId));
  const headers = {
    ...problemHeaders(error, requestId),
    'content-length': `${Buffer.byteLength(body)}`,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${error.http} ${titleOf(error.code)}`, ...lines, '', body].join('\r\n');
}

/** Sends `body` as uncacheable JSON, in bytes so that no serializer adds a charset, which JSON does not define. */
export function sendJson(reply: FastifyReply, requestId: string, body: object): FastifyReply {
  return reply
    .headers({ ...privateHeaders(requestId), 'content-type': 'application/json' })
    .send(Buffer.from(JSON.stringify(body)));
}

/** Sends the request id and the members of `answer` as JSON. */
export function sendAnswer({ call }: FastifyRequest, reply: FastifyReply, answer: object): FastifyReply {
  return sendJson(reply, call.requestId, { request_id: call.requestId, ...answer });
}
