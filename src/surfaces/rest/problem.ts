import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERRORS, nearest, type Position, type QueryError, queryError } from 'osl-compiler';
import { parseInstant } from '../../base/instant.js';
import { count, either, type JsonShape, object, text, textOrNull, type ValueOf } from './shape.js';

/** Returns the JSON Pointer (RFC 6901) for `path`. */
export function jsonPointer(path: readonly (string | number)[]): string {
  // A long name is cut before escaping, which would lengthen it; a pointer with a cut name is too long to be sent
  // anyway.
  return path
    .map((step) => `/${String(step).slice(0, 2_000).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

const MAX_SHOWN_NAME = 64;

export function shownName(name: string): string {
  return `\`${name.slice(0, MAX_SHOWN_NAME)}\``;
}

/** Creates the error for a malformed request (E0511); `position` refers to the body as sent. */
export function malformed(
  detail: string,
  position: Position | null = null,
  hint: string | null = null,
): QueryError {
  return queryError('malformedBody', { detail, hint }, position);
}

/** Creates the error for an unknown name. The hint is the closest known name or, if none is close, all known names. */
export function unknownName(detail: string, name: string, known: readonly string[]): QueryError {
  const closest = nearest(name, known);
  if (closest !== null) return malformed(detail, null, `perhaps you meant \`${closest}\``);
  return malformed(
    detail,
    null,
    known.length === 0 ? null : `known are ${known.map((k) => `\`${k}\``).join(', ')}`,
  );
}

export const MAX_TERM_LENGTH = 200;

/** Trims and validates a text: 1 to 200 characters, none of them control characters. @throws QueryError E0511 */
export function readTerm(name: string, value: string): string {
  const term = value.trim();
  if (term === '') throw malformed(`\`${name}\` is missing or empty`).about(`/${name}`);
  if ([...term].length > MAX_TERM_LENGTH)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: MAX_TERM_LENGTH }).about(
      `/${name}`,
    );
  if (/[\p{Cc}\p{Cs}]/u.test(term))
    throw malformed(`\`${name}\` holds a control character`).about(`/${name}`);
  return term;
}

/** Parses a day or a timestamp, in ms since 1970; without an offset it is in UTC. @throws QueryError E0511 */
export function readMoment(name: string, given: string): number {
  const ms = parseInstant(given);
  if (ms === null) throw malformed(`\`${name}\` is a moment, such as 2026-01-31T09:00:00Z`).about(`/${name}`);
  return ms;
}

/** Maximum size of a request's body in bytes. */
export const BODY_LIMIT = 2_097_152;
/** Maximum size of a request's head in bytes; a token has at most 8 KiB. */
export const HEAD_LIMIT = 16_384;

/**
 * Converts a Fastify or Node error caused by the request to an error of the catalogue; returns null for any other
 * error.
 */
export function toHttpError(error: unknown): QueryError | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return queryError('bodyTooLarge', { limit: BODY_LIMIT });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return queryError('mediaType', {});
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return queryError('malformedBody', { detail: 'the body has not the length that its head states' });
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return queryError('malformedBody', { detail: 'the path of the request is not valid' });
    case 'HPE_HEADER_OVERFLOW':
      return queryError('tooLarge', { what: 'the head of the request', limit: HEAD_LIMIT });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return queryError('malformedBody', { detail: 'the request did not arrive in time' });
    case 'ECONNRESET':
      return queryError('malformedBody', { detail: 'the request ended before its body was complete' });
    default:
      return code.startsWith('HPE_') || code.startsWith('FST_ERR_CTP_')
        ? queryError('malformedBody', { detail: 'the request is not well formed' })
        : null;
  }
}

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
const NULL_SHAPE: JsonShape<null> = { type: 'null' };
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
      NULL_SHAPE,
      object(
        { offset: count(), line: count(), column: count() },
        'Position in the text of the request, in UTF-16 code units.',
      ),
    ),
    'pointer?': text('JSON Pointer to the invalid member of the body.'),
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
  members: object = {},
): FastifyReply {
  // Sent as bytes, so that no serializer adds a charset, which JSON does not define.
  const body = Buffer.from(JSON.stringify({ ...problemOf(error, requestId), ...members }));
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
