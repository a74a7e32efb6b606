/** A JSON object without duplicate keys at any depth. */
export type JsonObject = ReadonlyMap<string, unknown>;

export type JsonFault = 'not an object' | 'duplicate key';

/** A fault in a JSON text, and its offset in UTF-16 code units. */
export interface JsonTextFault {
  readonly kind: 'duplicate key' | 'lone surrogate';
  readonly offset: number;
}

/**
 * Parses one JSON object from UTF-8. Rejects duplicate keys at any depth: `JSON.parse` keeps the last of two equal
 * keys, other parsers the first.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | JsonFault {
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    return 'not an object';
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object';
  const fault = jsonTextFault(text);
  if (fault !== null) return fault.kind === 'duplicate key' ? 'duplicate key' : 'not an object';
  return new Map<string, unknown>(Object.entries(value));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/**
 * Returns the first fault in `json` that two parsers could read differently: a duplicate key, or an escape that is half
 * of a surrogate pair. `json` must be valid for `JSON.parse`. Linear time.
 */
export function jsonTextFault(json: string): JsonTextFault | null {
  const openObjects: Set<string>[] = [];
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (code === OPEN) openObjects.push(new Set());
    else if (code === CLOSE) openObjects.pop();
    else if (code === QUOTE) {
      const end = endOfString(json, i);
      const fault = stringFault(json, i, end, openObjects.at(-1));
      if (fault !== null) return { kind: fault, offset: i };
      i = end;
    }
  }
  return null;
}

/** Number of escaped quotes after which a string is read by character: searching from each to the next is slow. */
const MAX_SEARCHES = 16;

/** Returns the offset of the quote that closes the string at `start`; the length of `json` if it is not closed. */
export function endOfString(json: string, start: number): number {
  let at = start + 1;
  for (let searches = 0; searches < MAX_SEARCHES; searches++) {
    const quote = json.indexOf('"', at);
    if (quote === -1) return json.length;
    if (!isEscaped(json, quote)) return quote;
    at = quote + 1;
  }
  return endByCharacter(json, at);
}

function endByCharacter(json: string, from: number): number {
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return json.length;
}

/** True if an odd number of backslashes precedes `at`; outside strings, valid JSON contains none. */
function isEscaped(json: string, at: number): boolean {
  let first = at;
  while (json.charCodeAt(first - 1) === BACKSLASH) first--;
  return (at - first) % 2 === 1;
}

/** Not `includes`, which is slow for many backslashes. */
const SURROGATE = /\\u[dD]/;

function stringFault(
  json: string,
  start: number,
  end: number,
  keys: Set<string> | undefined,
): JsonTextFault['kind'] | null {
  const isKey = json.charCodeAt(afterSpace(json, end + 1)) === COLON;
  const token = json.slice(start, end + 1);
  if (!isKey && !SURROGATE.test(token)) return null;
  const text = String(JSON.parse(token));
  if (!text.isWellFormed()) return 'lone surrogate';
  if (!isKey || keys === undefined) return null;
  if (keys.has(text)) return 'duplicate key';
  keys.add(text);
  return null;
}

function afterSpace(json: string, from: number): number {
  let i = from;
  while (json[i] === ' ' || json[i] === '\t' || json[i] === '\n' || json[i] === '\r') i++;
  return i;
}
