import { type Readable, Transform } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { afterBlanks, endOfString, mayRound } from '../rest/bodies/json.js';

/**
 * Returns a tool call's arguments exactly as written in the message; null if it has none, or if parsing them cannot
 * round any number.
 */
export function rawArguments(message: string): string | null {
  if (!mayRound(message)) return null;
  const params = memberOf(message, 'params');
  return params === null ? null : memberOf(params, 'arguments');
}

/** Returns the raw JSON of member `name` of the object in `json`, which must be valid; null if missing. */
function memberOf(json: string, name: string): string | null {
  let at = afterBlanks(json, 0);
  if (json[at] !== '{') return null;
  at = afterBlanks(json, at + 1);
  while (json[at] === '"') {
    const end = endOfString(json, at) + 1;
    const key = String(JSON.parse(json.slice(at, end)));
    const start = afterBlanks(json, afterBlanks(json, end) + 1);
    const behind = endOfValue(json, start);
    if (key === name) return json.slice(start, behind);
    at = afterBlanks(json, afterBlanks(json, behind) + 1);
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
export const LONGEST_MESSAGE = 10_485_760;

/**
 * Keeps the arguments of each tool call as they were written. `written` takes those of a call, once. None is dropped
 * before that, since numbers would then be rounded without notice.
 */
export function captureArguments(input: Readable): {
  readonly passed: Readable;
  readonly written: (id: string | number) => string | null;
} {
  const pending = new Map<string | number, string>();
  const decoder = new StringDecoder('utf8');
  let rest = '';
  const passed = new Transform({
    transform(chunk: Buffer, _, done) {
      const [first = '', ...lines] = decoder.write(chunk).split('\n');
      rest += rest.length > LONGEST_MESSAGE ? '' : first;
      for (const line of lines) {
        keep(pending, rest);
        rest = line;
      }
      done(null, chunk);
    },
  });
  const written = (id: string | number): string | null => {
    const found = pending.get(id) ?? null;
    pending.delete(id);
    return found;
  };
  return { passed: input.pipe(passed), written };
}

function keep(kept: Map<string | number, string>, line: string): void {
  try {
    const written = rawArguments(line);
    if (written === null) return;
    const { id, method }: { readonly id?: unknown; readonly method?: unknown } = JSON.parse(line);
    if (method !== 'tools/call') return;
    if (typeof id === 'string' || typeof id === 'number') kept.set(id, written);
  } catch {
    // not JSON, which the protocol library reports
  }
}
