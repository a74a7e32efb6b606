import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { type QueryError, queryError } from 'osl-compiler';
import { queryParameters } from './query-string.js';

/** The members of a JSON object, by name. */
export type Fields = ReadonlyMap<string, unknown>;

/** The body, which must be a JSON object in UTF-8; beside it no parameter is known. @throws QueryError E4150, E0511 */
export function jsonFields(request: FastifyRequest): Fields {
  queryParameters(request, []);
  requireJson(request);
  return objectOf(request.body);
}

function requireJson(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  const isJson = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i.test(type);
  if (!isJson || encoding.toLowerCase() !== 'identity') throw queryError('mediaType', {});
}

function objectOf(body: unknown): Fields {
  const parsed = parseJson(body);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw malformed('the body must be a JSON object');
  }
  return new Map(Object.entries(parsed));
}

function parseJson(body: unknown): unknown {
  if (!(body instanceof Buffer) || body.length === 0) throw malformed('the body is empty');
  if (!isUtf8(body)) throw malformed('the body is not UTF-8');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw malformed('the body is not valid JSON');
  }
}

/** Which one of `names` the body has. @throws QueryError E0511 where it has none or several */
export function onlyOf<N extends string>(fields: Fields, names: readonly N[]): N {
  const [only, ...more] = names.filter((name) => fields.has(name));
  if (only === undefined || more.length > 0)
    throw malformed(`the body has exactly one of ${names.map((n) => `\`${n}\``).join(', ')}`);
  return only;
}

/** Longest part of an unknown field's name that is shown. */
const SHOWN = 64;

export function noField(name: string): QueryError {
  return malformed(`the body has no field \`${name.slice(0, SHOWN)}\``);
}

export function malformed(detail: string): QueryError {
  return queryError('malformedBody', { detail });
}
