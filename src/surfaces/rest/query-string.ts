import type { FastifyRequest } from 'fastify';
import { type QueryError, queryError } from 'osl-compiler';

/** Longest part of an unknown parameter's name that is shown. */
const SHOWN = 64;

/** The parameters of the URL, each at most once and none but those of `known`. @throws QueryError E0511 */
export function queryParameters(
  request: FastifyRequest,
  known: readonly string[],
): ReadonlyMap<string, string> {
  const at = request.url.indexOf('?');
  const found = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(at === -1 ? '' : request.url.slice(at + 1))) {
    if (!known.includes(name)) throw malformed(`the query has no parameter \`${name.slice(0, SHOWN)}\``);
    if (found.has(name)) throw malformed(`the parameter \`${name}\` is given twice`);
    found.set(name, value);
  }
  return found;
}

/** @throws QueryError E0511 */
export function flagParameter(parameters: ReadonlyMap<string, string>, name: string): boolean {
  const value = parameters.get(name) ?? 'false';
  if (value !== 'true' && value !== 'false') throw malformed(`\`${name}\` is true or false`);
  return value === 'true';
}

/** Code points of a text that is looked up. */
const LONGEST_TERM = 200;

/** A text of 1 to 200 characters, without control characters. @throws QueryError E0511 */
export function termParameter(parameters: ReadonlyMap<string, string>, name: string): string {
  const text = (parameters.get(name) ?? '').trim();
  if (text === '') throw malformed(`\`${name}\` is missing or empty`);
  if ([...text].length > LONGEST_TERM)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: LONGEST_TERM });
  if (/[\p{Cc}\p{Cs}]/u.test(text)) throw malformed(`\`${name}\` holds a control character`);
  return text;
}

function malformed(detail: string): QueryError {
  return queryError('malformedBody', { detail });
}
