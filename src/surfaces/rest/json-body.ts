import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { type Position, positionOfIndex, type QueryError, queryError } from 'osl-compiler';
import { type JsonTextFault, jsonTextFault } from '../../../policy/index.js';
import { queryParameters } from './query-string.js';

/** The members of a JSON object, by name. */
export type Fields = ReadonlyMap<string, unknown>;

/** The body, which must be a JSON object in UTF-8; beside it no parameter is known. @throws QueryError E4150, E0511 */
export function jsonFields(request: FastifyRequest): Fields {
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

/** The members of the object that the bytes of a body hold. @throws QueryError E0511 */
export function fieldsIn(body: unknown): Fields {
  const parsed = parseJson(body);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) {
    throw malformed('the body must be a JSON object');
  }
  return new Map(Object.entries(parsed));
}

function parseJson(body: unknown): unknown {
  if (!(body instanceof Buffer) || body.length === 0) throw malformed('the body is empty');
  if (!isUtf8(body)) throw malformed('the body is not UTF-8');
  const text = body.toString('utf8');
  requireFewMembers(text);
  const parsed = parsedJson(text);
  const fault = ambiguityOf(text);
  if (fault !== null) throw fault;
  return parsed;
}

/** Members of all objects of a body together: to read more would hold up everybody else. */
const MOST_MEMBERS = 10_000;

/** @throws QueryError E0511, 54000 */
function requireFewMembers(text: string): void {
  let members = 0;
  for (const _ of marksOf(text, COLONS))
    if (++members > MOST_MEMBERS)
      throw queryError('tooLarge', { what: 'the number of members of the body', limit: MOST_MEMBERS });
}

/** Values of a message that a reader of general use reads, as MCP's does: it makes more of each than a parser would. */
const MOST_VALUES = 10_000;
const DEEPEST = 64;

/** Refuses a message of many values, or of values deep in each other, before it is read. @throws QueryError E0511, 54000 */
export function requirePlain(text: string): void {
  let values = 0;
  let depth = 0;
  for (const mark of marksOf(text, SHAPE)) {
    if (mark === COMMA) values++;
    else if (mark === OPEN_LIST || mark === OPEN_OBJECT) depth++;
    else if (mark === CLOSE_LIST || mark === CLOSE_OBJECT) depth--;
    if (values > MOST_VALUES)
      throw queryError('tooLarge', { what: 'the number of values of the message', limit: MOST_VALUES });
    if (depth > DEEPEST) throw queryError('tooLarge', { what: 'the depth of the message', limit: DEEPEST });
  }
}

/** Codes of those `marks` that stand outside of strings. */
function* marksOf(text: string, marks: ReadonlySet<number>): Generator<number> {
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) quoted = !quoted;
    else if (code === BACKSLASH && quoted) at++;
    else if (!quoted && marks.has(code)) yield code;
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const COLONS: ReadonlySet<number> = new Set([COLON]);
const SHAPE: ReadonlySet<number> = new Set([COMMA, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT]);

/** What two readers of `json`, which is valid, would understand differently; null where they all agree. */
export function ambiguityOf(json: string): QueryError | null {
  const fault = jsonTextFault(json);
  return fault === null ? null : malformed(FAULTS[fault.kind], positionOfIndex(json, fault.offset));
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed('the body is not valid JSON', placeIn(text, error));
  }
}

/** Where the parser says that it stopped; it does not always. */
function placeIn(text: string, error: unknown): Position | null {
  const offset = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return offset === undefined ? null : positionOfIndex(text, Number(offset));
}

const FAULTS: Readonly<Record<JsonTextFault['kind'], string>> = {
  'duplicate key': 'an object of the body names a key twice',
  'lone surrogate': 'a string of the body holds half of a surrogate pair',
};

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

/** The fault of a body; `position` is in the body as it was sent. */
export function malformed(detail: string, position: Position | null = null): QueryError {
  return queryError('malformedBody', { detail }, position);
}
