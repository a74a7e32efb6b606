import type { Problem } from '../../api/problem.js';
import { quoted } from './editor/completions-at.js';

/** A change of the text that would mend an error. Offsets are UTF-16 units. */
export interface Fix {
  readonly from: number;
  readonly to: number;
  readonly insert: string;
}

const PATH = /^(?:[\p{L}\p{N}_$]+|"(?:[^"]|"")*")(?:\.(?:[\p{L}\p{N}_$]+|"(?:[^"]|"")*"))*/u;

/** The stretch of the text that an error is about; null where it has no place in it. */
export function placeOf(
  text: string,
  position: Problem['position'],
): { readonly from: number; readonly to: number } | null {
  if (position === null || position.offset > text.length) return null;
  const from = position.offset;
  const path = PATH.exec(text.slice(from))?.[0] ?? '';
  return { from, to: Math.min(text.length, from + Math.max(1, path.length)) };
}

/**
 * What the gateway offers in the place of a name that is not declared: of a path, the part that was meant. Null where its
 * hint names none.
 */
export function fixOf(
  text: string,
  { position, hint, detail }: Pick<Problem, 'position' | 'hint' | 'detail'>,
): Fix | null {
  const offered = /^perhaps you meant `([^`]+)`$/.exec(hint ?? '')?.[1];
  const place = placeOf(text, position);
  if (offered === undefined || place === null) return null;
  const parts = partsOf(text.slice(place.from, place.to));
  const wrong = (/`([^`]+)`/.exec(detail)?.[1] ?? '').split('.').at(-1);
  const part = parts.find(({ name }) => name === wrong) ?? parts.at(-1);
  if (part === undefined) return null;
  const insert = /[^\w$]/.test(offered) && offered.includes('.') ? offered : quoted(offered);
  return { from: place.from + part.from, to: place.from + part.to, insert };
}

function partsOf(path: string) {
  return [...path.matchAll(/"(?:[^"]|"")*"|[^."]+/g)].map(({ 0: part, index }) => ({
    name: part.replace(/^"|"$/g, ''),
    from: index,
    to: index + part.length,
  }));
}

export function applied(text: string, { from, to, insert }: Fix): string {
  return text.slice(0, from) + insert + text.slice(to);
}
