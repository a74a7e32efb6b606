import { unquoted } from './find.js';

interface Sign {
  readonly sign: '{' | '}' | '[' | ']' | ',' | ':';
  readonly at: number;
}

/** Punctuation between `from` and `to`; an unterminated quote extends to the end. */
function* signsOf(text: string, from = 0, to = text.length): Generator<Sign> {
  let quote = '';
  for (let at = from; at < to; at++) {
    const character = text[at] ?? '';
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if ((character === '"' || character === "'") && /[\s[{,:]/.test(text[at - 1] ?? ' '))
      quote = character;
    else if (character === '#' && /\s/.test(text[at - 1] ?? ' ')) at = endOfLine(text, at, to);
    else if ('{}[],'.includes(character))
      yield { sign: character as Sign['sign'], at }; // matched above
    else if (character === ':' && /[\s[{]|^$/.test(text[at + 1] ?? '')) yield { sign: ':', at };
  }
}

function endOfLine(text: string, from: number, to: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? to : Math.min(end, to);
}

/** Number of flow collections that `text` leaves open; negative if it closes more than it opens. */
export function depthOf(text: string): number {
  let depth = 0;
  for (const { sign } of signsOf(text)) {
    if (sign === '{' || sign === '[') depth++;
    else if (sign === '}' || sign === ']') depth--;
  }
  return depth;
}

export interface FlowPlace {
  /** Path from the start of the collection: keys, and `[]` for list elements. */
  readonly steps: readonly string[];
  readonly role: 'key' | 'value';
  readonly start: number;
  /** Values before the word in the innermost mapping; null outside any mapping. */
  readonly beside: ReadonlyMap<string, string> | null;
  readonly within: number;
}

interface OpenCollection {
  readonly kind: 'map' | 'list';
  key: string | null;
  readonly beside: Map<string, string>;
}

export function flowPlace(before: string): FlowPlace {
  const frames: OpenCollection[] = [];
  let start = 0;
  const close = (at: number): void => {
    const frame = frames.at(-1);
    const text = before.slice(start, at).trim();
    if (frame?.kind === 'map' && frame.key !== null && text !== '')
      frame.beside.set(frame.key, unquoted(text));
    if (frame !== undefined) frame.key = null;
  };
  for (const { sign, at } of signsOf(before)) {
    const frame = frames.at(-1);
    if (sign === '{' || sign === '[')
      frames.push({ kind: sign === '{' ? 'map' : 'list', key: null, beside: new Map() });
    else if (sign === '}' || sign === ']') {
      close(at);
      frames.pop();
    } else if (sign === ',') close(at);
    else if (frame?.kind === 'map' && frame.key === null)
      frame.key = unquoted(before.slice(start, at).trim());
    else continue;
    start = at + 1;
  }
  const steps = frames.flatMap(({ kind, key }) => (kind === 'list' ? ['[]'] : key === null ? [] : [key]));
  const last = frames.at(-1);
  const innermost = frames.findLastIndex(({ kind }) => kind === 'map');
  return {
    steps,
    role: last?.kind === 'map' && last.key === null ? 'key' : 'value',
    start: start + (/^\s*/.exec(before.slice(start))?.[0].length ?? 0),
    beside: frames[innermost]?.beside ?? null,
    within: frames.length - 1 - innermost,
  };
}

/** Plain values of a mapping, read from the text after the cursor, which is `within` collections deeper. */
export function siblingsAfter(after: string, within: number): ReadonlyMap<string, string> {
  const beside = new Map<string, string>();
  let depth = within;
  let start = 0;
  let key: string | null = null;
  for (const { sign, at } of signsOf(after)) {
    if (sign === '{' || sign === '[') depth++;
    else if (sign === ':' && depth === 0) {
      key = unquoted(after.slice(start, at).trim());
      start = at + 1;
    } else if (sign === ',' && depth > 0) continue;
    else if (sign !== ':') {
      if (depth === 0 && key !== null) beside.set(key, unquoted(after.slice(start, at).trim()));
      if (sign !== ',') depth--;
      if (depth < 0) return beside;
      if (depth === 0 && sign === ',') {
        start = at + 1;
        key = null;
      }
    }
  }
  return beside;
}
