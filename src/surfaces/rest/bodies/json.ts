import { isUtf8 } from 'node:buffer';
import type { FastifyRequest } from 'fastify';
import { type Position, positionOfIndex, type QueryError, queryError } from 'osl-compiler';
import { endOfString, type JsonTextFault, jsonTextFault } from '../../../../policy/index.js';
import { queryParameters } from '../parameters.js';
import { jsonPointer, malformed } from '../problem.js';

export type JsonFields = Readonly<Record<string, unknown>>;

/** Parses the body as a JSON object in UTF-8; URL parameters are refused. @throws QueryError E4150, E0511 */
export function jsonFields(request: FastifyRequest): JsonFields {
  queryParameters(request, []);
  requireJson(request);
  return parseFields(request.body);
}

const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-?8"?\s*)?;?\s*$/i;
/** Maximum length of a content type, since `JSON_TYPE` takes quadratic time for many blanks. */
const MAX_TYPE_LENGTH = 256;

function requireJson(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  const encoding = request.headers['content-encoding'] ?? 'identity';
  const isJson = type.length <= MAX_TYPE_LENGTH && JSON_TYPE.test(type);
  if (!isJson || encoding.toLowerCase() !== 'identity') throw queryError('mediaType', {});
}

export function parseFields(body: unknown): JsonFields {
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
  const parsed = parseText(text);
  const fault = findAmbiguity(text);
  if (fault !== null) throw fault;
  requireExactNumbers(text);
  return parsed;
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed('the body is not valid JSON', errorPosition(text, error));
  }
}

function errorPosition(text: string, error: unknown): Position | null {
  const offset = error instanceof Error ? /at position (\d+)/.exec(error.message)?.[1] : undefined;
  return offset === undefined ? null : positionOfIndex(text, Number(offset));
}

/** Maximum number of members in all objects of a body: parsing more would block the event loop. */
const MAX_MEMBERS = 10_000;

/** Maximum nesting depth of a body: for each level, a parser uses as much memory as for a small object. */
const MAX_BODY_DEPTH = 1_000;

/** Refuses a body with too many members or levels before it is parsed. @throws QueryError E0511, 54000 */
function requireFewMembers(text: string): void {
  requireWithinLimits(
    text,
    COLON,
    ['the number of members of the body', MAX_MEMBERS],
    ['the depth of the body', MAX_BODY_DEPTH],
  );
}

/** Maximum number of values in an MCP message; the protocol library does more work per value than a JSON parser. */
const MAX_MESSAGE_VALUES = 10_000;
const MAX_MESSAGE_DEPTH = 64;

/** Refuses a message with too many values or levels before it is parsed. @throws QueryError E0511, 54000 */
export function requireFewValues(text: string): void {
  requireWithinLimits(
    text,
    COMMA,
    ['the number of values of the message', MAX_MESSAGE_VALUES],
    ['the depth of the message', MAX_MESSAGE_DEPTH],
  );
}

type Limit = readonly [what: string, limit: number];

/**
 * Throws if `text` contains the character `separator` too often or is nested too deeply. Strings are skipped, since a
 * body may be one long text.
 */
function requireWithinLimits(
  text: string,
  separator: number,
  [itemName, maxCount]: Limit,
  [level, maxDepth]: Limit,
): void {
  let count = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === separator) count++;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) depth++;
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
    if (count > maxCount) throw queryError('tooLarge', { what: itemName, limit: maxCount });
    if (depth > maxDepth) throw queryError('tooLarge', { what: level, limit: maxDepth });
  }
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Returns an error if different parsers could interpret valid JSON differently; otherwise null. */
export function findAmbiguity(json: string): QueryError | null {
  const fault = jsonTextFault(json);
  return fault === null ? null : malformed(FAULTS[fault.kind], positionOfIndex(json, fault.offset));
}

const FAULTS: Readonly<Record<JsonTextFault['kind'], string>> = {
  'duplicate key': 'an object of the body names a key twice',
  'lone surrogate': 'a string of the body holds half of a surrogate pair',
};

export { endOfString };

/** True if `json` may contain numbers that a double cannot represent exactly. */
export function mayRound(json: string): boolean {
  return longNumberFrom(json, 0) !== null;
}

/**
 * Refuses numbers that JSON parsers would round: integers beyond 2⁵³ − 1, and decimals with more digits or larger
 * exponents than a double has. Takes time linear in the length of `json`, which must be valid.
 *
 * @throws QueryError E0511, with position and JSON pointer
 */
export function requireExactNumbers(json: string): void {
  for (let number = longNumberFrom(json, 0); number !== null; number = longNumberFrom(json, number.end)) {
    const { start, end } = number;
    if (!isExact(json.slice(start, end)))
      throw queryError('inexactNumber', { pointer: pointerAt(json, start) }, positionOfIndex(json, start));
  }
}

/** Minimum length of a number without exponent that a double may round. */
const LONG_NUMBER_LENGTH = 16;

/**
 * Finds the first number at or after `from` that has an exponent or at least `LONG_NUMBER_LENGTH` characters. `from` must be
 * outside strings.
 */
function longNumberFrom(json: string, from: number): { readonly start: number; readonly end: number } | null {
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === MINUS || isDigit(code)) {
      const start = at;
      let hasExponent = false;
      while (isNumberCharacter(json.charCodeAt(at)))
        hasExponent = isExponent(json.charCodeAt(at++)) || hasExponent;
      if (hasExponent || at - start >= LONG_NUMBER_LENGTH) return { start, end: at };
      at--;
    }
  }
  return null;
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isExponent = (code: number): boolean => code === 0x65 || code === 0x45;
const isNumberCharacter = (code: number): boolean =>
  isDigit(code) || isExponent(code) || code === POINT || code === MINUS || code === PLUS;

function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return false;
  return normalizeDecimal(token) === normalizeDecimal(String(value));
}

function normalizeDecimal(token: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = withoutTrailingZeros(digits);
  return significant === ''
    ? '0'
    : `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Not `/0+$/`, which takes quadratic time for many zeros before another digit. */
function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === ZERO) end--;
  return digits.slice(0, end);
}

const ZERO = 0x30;

function pointerAt(json: string, offset: number): string {
  const path: { readonly list: boolean; step: string | number }[] = [];
  for (let at = 0; at < offset; at++) {
    const char = json[at];
    const top = path.at(-1);
    if (char === '{' || char === '[') path.push({ list: char === '[', step: char === '[' ? 0 : '' });
    else if (char === '}' || char === ']') path.pop();
    else if (char === ',' && top?.list === true) top.step = Number(top.step) + 1;
    else if (char === '"') {
      const end = endOfString(json, at);
      if (top?.list === false && json[afterBlanks(json, end + 1)] === ':')
        top.step = String(JSON.parse(json.slice(at, end + 1)));
      at = end;
    }
  }
  return jsonPointer(path.map(({ step }) => step));
}

export function afterBlanks(json: string, from: number): number {
  let at = from;
  while (/\s/.test(json[at] ?? '')) at++;
  return at;
}
