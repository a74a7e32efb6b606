import type { FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import { MOST_NAMES, SCHEMA_PARTS, type SchemaPart, type SchemaSelection } from '../../model/graph/index.js';
import { malformed, shownName, termIn, unknownName } from './problem.js';

/** Parameters that select part of the schema. In a URL, `names` and `parts` are comma-separated lists. */
export const SCHEMA_PARAMETERS = ['names', 'parts', 'index', 'from'] as const;

/** Reads which part of the schema is requested; null means all of it. @throws QueryError E0511 */
export function schemaSelection(given: Readonly<Partial<Record<string, unknown>>>): SchemaSelection | null {
  const { names: wantedNames, parts: wantedParts } = given;
  const names = wantedNames === undefined ? null : listOf('names', wantedNames);
  const parts = wantedParts === undefined ? null : listOf('parts', wantedParts).map(partNamed);
  const index = given['index'] === undefined ? false : flagOf('index', given['index']);
  if (!index && given['from'] !== undefined) throw malformed('`from` goes with `index` only').about('/from');
  if (index && (names !== null || parts !== null))
    throw malformed('`index` goes with neither `names` nor `parts`');
  if (index) return { kind: 'index', from: countOf('from', given['from'] ?? 0) };
  return names === null && parts === null ? null : { kind: 'part', names, parts };
}

function listOf(name: string, given: unknown): readonly string[] {
  const list: readonly unknown[] =
    typeof given === 'string' ? given.split(',') : Array.isArray(given) ? given : [];
  if (list.length === 0 || list.some((one) => typeof one !== 'string'))
    throw malformed(`\`${name}\` must be a list of names`).about(`/${name}`);
  if (list.length > MOST_NAMES)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: MOST_NAMES }).about(`/${name}`);
  return list.map((one) => termIn(name, String(one)));
}

function partNamed(name: string): SchemaPart {
  const part = SCHEMA_PARTS.find((known) => known === name.toLowerCase());
  if (part === undefined)
    throw unknownName(`the schema has no part ${shownName(name)}`, name, SCHEMA_PARTS).about('/parts');
  return part;
}

function flagOf(name: string, given: unknown): boolean {
  if (given === true || given === 'true') return true;
  if (given === false || given === 'false') return false;
  throw malformed(`\`${name}\` is true or false`).about(`/${name}`);
}

function countOf(name: string, given: unknown): number {
  const text = String(given);
  if (!/^\d{1,9}$/.test(text))
    throw malformed(`\`${name}\` is a whole number, as \`next\` of the page before`).about(`/${name}`);
  return Number(text);
}

export { MOST_NAMES, SCHEMA_PARTS };

/** Reads the URL's parameters. Duplicates and parameters not in `known` are refused. @throws QueryError E0511 */
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

export function flagParameter(parameters: ReadonlyMap<string, string>, name: string): boolean {
  const value = parameters.get(name) ?? 'false';
  if (value !== 'true' && value !== 'false') throw malformed(`\`${name}\` is true or false`);
  return value === 'true';
}

export function termParameter(parameters: ReadonlyMap<string, string>, name: string): string {
  return termIn(name, parameters.get(name) ?? '');
}
