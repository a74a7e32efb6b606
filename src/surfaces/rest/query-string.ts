import type { FastifyRequest } from 'fastify';
import { malformed, shownName, termIn, unknownName } from './fault.js';

/** Parameters of the URL, each at most once and only those in `known`. @throws QueryError E0511 */
export function queryParameters(
  request: FastifyRequest,
  known: readonly string[],
): ReadonlyMap<string, string> {
  const at = request.url.indexOf('?');
  const found = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(at === -1 ? '' : request.url.slice(at + 1))) {
    if (!known.includes(name))
      throw unknownName(`the query has no parameter ${shownName(name)}`, name, known);
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

/** Text of 1 to 200 characters without control characters. @throws QueryError E0511 */
export function termParameter(parameters: ReadonlyMap<string, string>, name: string): string {
  return termIn(name, parameters.get(name) ?? '');
}
