import { type Readable, Transform } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { afterBlanks, endOfString, mayRound } from '../rest/bodies/json.js';

/**
 * Returns a tool call's arguments exactly as written in the message; null if it has none, or if parsing them cannot
 * round any number.
 */
export function rawArguments(message: string): string | null {
  if (!mayRound(message)) return null;
  const params = rawMember(message, 'params');
  return params === null ? null : rawMember(params, 'arguments');
}

/** Returns the raw JSON of member `name` of the object in `json`, which must be valid; null if missing. */
function rawMember(json: string, name: string): string | null {
  let at = afterBlanks(json, 0);
  if (json[at] !== '{') return null;
  at = afterBlanks(json, at + 1);
  while (json[at] === '"') {
    const end = endOfString(json, at) + 1;
    const key = String(JSON.parse(json.slice(at, end)));
    const start = afterBlanks(json, afterBlanks(json, end) + 1);
    const valueEnd = endOfValue(json, start);
    if (key === name) return json.slice(start, valueEnd);
    at = afterBlanks(json, afterBlanks(json, valueEnd) + 1);
  }
  return null;
}

function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at++) {
    const char = json[at];
    if (char === '"') at = endOfString(json, at);
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']') depth--;
    const ends = char === ',' || char === '}' || char === ']';
    if (ends && depth < 0) return at;
    if (char === ',' && depth === 0) return at;
    if ((char === '}' || char === ']') && depth === 0) return at + 1;
  }
  return json.length;
}

/** Maximum bytes of a message on standard input: the protocol library refuses a longer one, and ends. */
export const MAX_MESSAGE_BYTES = 10_485_760;

/**
 * Keeps the arguments of each tool call as they were written. `takeArguments` returns and removes those of one call. None is dropped
 * before that, since numbers would then be rounded without notice.
 */
export function captureArguments(input: Readable): {
  readonly output: Readable;
  readonly takeArguments: (id: string | number) => string | null;
} {
  const pending = new Map<string | number, string>();
  const decoder = new StringDecoder('utf8');
  let currentLine = '';
  const passThrough = new Transform({
    transform(chunk: Buffer, _, done) {
      const [first = '', ...lines] = decoder.write(chunk).split('\n');
      currentLine += currentLine.length > MAX_MESSAGE_BYTES ? '' : first;
      for (const line of lines) {
        storeArguments(pending, currentLine);
        currentLine = line;
      }
      done(null, chunk);
    },
  });
  const takeArguments = (id: string | number): string | null => {
    const argumentsText = pending.get(id) ?? null;
    pending.delete(id);
    return argumentsText;
  };
  return { output: input.pipe(passThrough), takeArguments };
}

function storeArguments(pending: Map<string | number, string>, line: string): void {
  try {
    const raw = rawArguments(line);
    if (raw === null) return;
    const { id, method }: { readonly id?: unknown; readonly method?: unknown } = JSON.parse(line);
    if (method !== 'tools/call') return;
    if (typeof id === 'string' || typeof id === 'number') pending.set(id, raw);
  } catch {
    // not JSON, which the protocol library reports
  }
}
