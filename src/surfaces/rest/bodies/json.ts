import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { type Position, positionOfIndex, queryError } from 'osl-compiler';
import { malformed } from '../fault.js';
import { queryParameters } from '../query-string.js';
import { requireExactNumbers } from './json-numbers.js';
import { ambiguityOf, requireFewMembers } from './json-text.js';

export type JsonFields = Readonly<Record<string, unknown>>;

/** Body as a JSON object in UTF-8; URL parameters are refused. @throws QueryError E4150, E0511 */
export function jsonFields(request: FastifyRequest): JsonFields {
  queryParameters(request, []);
  requireJson(request);
  return fieldsIn(request.body);
}

function requireJson(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  const isJson = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i.test(type);
  if (!isJson || encoding.toLowerCase() !== 'identity') throw queryError('mediaType', {});
}

/** Members of the JSON object in a body's bytes. @throws QueryError E0511 */
export function fieldsIn(body: unknown): JsonFields {
  const parsed = parseJson(body);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw malformed('the body must be a JSON object');
  }
  return { ...parsed };
}

function parseJson(body: unknown): unknown {
  if (!(body instanceof Buffer) || body.length === 0) throw malformed('the body is empty');
  if (!isUtf8(body)) throw malformed('the body is not UTF-8');
  const text = body.toString('utf8');
  requireFewMembers(text);
  const parsed = parsedJson(text);
  const fault = ambiguityOf(text);
  if (fault !== null) throw fault;
  requireExactNumbers(text);
  return parsed;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed('the body is not valid JSON', placeIn(text, error));
  }
}

/** Position in the parser's message, if it has one. */
function placeIn(text: string, error: unknown): Position | null {
  const offset = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return offset === undefined ? null : positionOfIndex(text, Number(offset));
}
