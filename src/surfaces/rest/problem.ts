import type { FastifyReply } from 'fastify';
import { ERRORS, type QueryError } from 'osl-compiler';
import { titleOf } from './problem-titles.js';
import { count, either, object, type Shape, text, textOrNull, type ValueOf } from './shape.js';

const CODES = [...new Set(Object.values(ERRORS).map((e) => e.code))].sort();
const NOTHING: Shape<null> = { type: 'null' };
const CODE: Shape<string> = { type: 'string', enum: CODES, 'x-extensible': true };
const STATUS: Shape<number> = { type: 'integer', minimum: 400, maximum: 599 };

/** The body of an error answer (RFC 9457, `application/problem+json`). */
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
      object({ offset: count(), line: count(), column: count() }, 'Where in the text; in UTF-16 units.'),
    ),
    request_id: text('The call in the audit log.'),
  },
  'An error (RFC 9457).',
);
export type Problem = ValueOf<typeof PROBLEM>;

export function problemOf(error: QueryError, requestId: string): Problem {
  return {
    type: `urn:osl:error:${error.code}`,
    title: titleOf(error.code),
    status: error.http,
    code: error.code,
    sqlstate: error.sqlstate,
    detail: error.message,
    hint: error.hint,
    position: error.position,
    request_id: requestId,
  };
}

/** Headers of every answer that is for its asker alone. */
export function privateHeaders(requestId: string): Record<string, string> {
  return {
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
  };
}

/** Seconds to wait where the fault itself does not say. */
const RETRY_AFTER_SECONDS = 5;

/** Headers of the answer that carries `error`. */
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

/** Sends the problem, with `more` members where this one has some. */
export function sendProblem(
  reply: FastifyReply,
  error: QueryError,
  requestId: string,
  more: object = {},
): FastifyReply {
  // As bytes, so that no serializer adds a charset, which JSON does not have.
  const body = Buffer.from(JSON.stringify({ ...problemOf(error, requestId), ...more }));
  return reply.code(error.http).headers(problemHeaders(error, requestId)).send(body);
}

/** The whole answer in HTTP/1.1, for a socket whose request never became one; the connection ends with it. */
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
