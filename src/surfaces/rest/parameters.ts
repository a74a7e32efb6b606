import type { FastifyRequest } from 'fastify';
import { queryError } from 'osl-compiler';
import { MOST_NAMES, SCHEMA_PARTS, type SchemaPart, type SchemaSelection } from '../../model/graph/index.js';
import { malformed, readTerm, shownName, unknownName } from './problem.js';

/** Parameters that select part of the schema. In a URL, `names` and `parts` are comma-separated lists. */
export const SCHEMA_PARAMETERS = ['names', 'parts', 'index', 'from'] as const;

/** Reads which part of the schema is requested; null means all of it. @throws QueryError E0511 */
export function schemaSelection(members: Readonly<Partial<Record<string, unknown>>>): SchemaSelection | null {
  const { names: rawNames, parts: rawParts } = members;
  const names = rawNames === undefined ? null : readList('names', rawNames);
  const parts = rawParts === undefined ? null : readList('parts', rawParts).map(partNamed);
  const index = members['index'] === undefined ? false : readFlag('index', members['index']);
  if (!index && members['from'] !== undefined)
    throw malformed('`from` goes with `index` only').about('/from');
  if (index && (names !== null || parts !== null))
    throw malformed('`index` goes with neither `names` nor `parts`');
  if (index) return { kind: 'index', from: readCount('from', members['from'] ?? 0) };
  return names === null && parts === null ? null : { kind: 'part', names, parts };
}

function readList(name: string, value: unknown): readonly string[] {
  const list: readonly unknown[] =
    typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
  if (list.length === 0 || list.some((item) => typeof item !== 'string'))
    throw malformed(`\`${name}\` must be a list of names`).about(`/${name}`);
  if (list.length > MOST_NAMES)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: MOST_NAMES }).about(`/${name}`);
  return list.map((item) => readTerm(name, String(item)));
}

function partNamed(name: string): SchemaPart {
  const part = SCHEMA_PARTS.find((known) => known === name.toLowerCase());
  if (part === undefined)
    throw unknownName(`the schema has no part ${shownName(name)}`, name, SCHEMA_PARTS).about('/parts');
  return part;
}

function readFlag(name: string, value: unknown): boolean {
  if (value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw malformed(`\`${name}\` is true or false`).about(`/${name}`);
}

function readCount(name: string, value: unknown): number {
  const text = String(value);
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
  const queryStart = request.url.indexOf('?');
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(
    queryStart === -1 ? '' : request.url.slice(queryStart + 1),
  )) {
    if (!known.includes(name))
      throw unknownName(`the query has no parameter ${shownName(name)}`, name, known);
    if (parameters.has(name)) throw malformed(`the parameter \`${name}\` is given twice`);
    parameters.set(name, value);
  }
  return parameters;
}

export function flagParameter(parameters: ReadonlyMap<string, string>, name: string): boolean {
  const value = parameters.get(name) ?? 'false';
  if (value !== 'true' && value !== 'false') throw malformed(`\`${name}\` is true or false`);
  return value === 'true';
}

export function termParameter(parameters: ReadonlyMap<string, string>, name: string): string {
  return readTerm(name, parameters.get(name) ?? '');
}
