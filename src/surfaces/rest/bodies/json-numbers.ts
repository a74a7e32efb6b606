import { positionOfIndex, queryError } from 'osl-compiler';
import { endOfString } from '../../../../policy/index.js';
import { jsonPointer } from '../request-errors.js';

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
  for (let found = longNumberFrom(json, 0); found !== null; found = longNumberFrom(json, found.end)) {
    const { start, end } = found;
    if (!isExact(json.slice(start, end)))
      throw queryError('inexactNumber', { pointer: pointerTo(json, start) }, positionOfIndex(json, start));
  }
}

/** Minimum length of a number without exponent that a double may round. */
const LONG_NUMBER = 16;

/** Finds the first number at or after `from` that is long or has an exponent. `from` must be outside strings. */
function longNumberFrom(json: string, from: number): { readonly start: number; readonly end: number } | null {
  for (let at = from; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === MINUS || isDigit(code)) {
      const start = at;
      let hasExponent = false;
      while (isOfNumber(json.charCodeAt(at))) hasExponent = isExponent(json.charCodeAt(at++)) || hasExponent;
      if (hasExponent || at - start >= LONG_NUMBER) return { start, end: at };
      at--;
    }
  }
  return null;
}

const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
const isExponent = (code: number): boolean => code === 0x65 || code === 0x45;
const isOfNumber = (code: number): boolean =>
  isDigit(code) || isExponent(code) || code === POINT || code === MINUS || code === PLUS;

function isExact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) return false;
  return decimalOf(token) === decimalOf(String(value));
}

function decimalOf(token: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  return significant === ''
    ? '0'
    : `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

function pointerTo(json: string, offset: number): string {
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
