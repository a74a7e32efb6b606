/** A JSON object whose keys are all different, at every depth. */
export type JsonObject = ReadonlyMap<string, unknown>;

export type JsonFault = 'not an object' | 'duplicate key';

/**
 * Parses the UTF-8 bytes of one JSON object. `JSON.parse` keeps the last of two equal keys where another reader
 * keeps the first, so an object that names a key twice, at any depth, is a fault.
 */
export function parseJsonObject(bytes: Uint8Array): JsonObject | JsonFault {
  const text = decodeUtf8(bytes);
  if (text === null) return 'not an object';
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'not an object';
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'not an object';
  if (hasDuplicateKey(text)) return 'duplicate key';
  return new Map<string, unknown>(Object.entries(value));
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

const TOKENS = /"(?:[^"\\]|\\.)*"(?<colon>[ \t\n\r]*:)?|[{}]/g;

/** `json` is known to be valid, so a string before a colon is a key of the innermost open object. */
function hasDuplicateKey(json: string): boolean {
  const open: Set<string>[] = [];
  for (const token of json.matchAll(TOKENS)) {
    if (token[0] === '{') open.push(new Set());
    else if (token[0] === '}') open.pop();
    else if (token.groups?.['colon'] !== undefined) {
      const keys = open.at(-1);
      const key: unknown = JSON.parse(token[0].slice(0, -token.groups['colon'].length));
      if (keys === undefined || typeof key !== 'string' || keys.has(key)) return true;
      keys.add(key);
    }
  }
  return false;
}
