import { positionOfIndex, queryError } from 'osl-compiler';

/** Matches texts containing a number that a parser might round: 16 digits or an exponent. */
const MAY_ROUND = /\d[\d.]{15}|\d[eE]/;

/** True if `json` may contain numbers that a double cannot represent exactly. */
export function mayRound(json: string): boolean {
  return MAY_ROUND.test(json);
}

const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * Refuses numbers that JSON parsers would round: integers beyond 2⁵³ − 1, and decimals with more digits or larger
 * exponents than a double has. Takes time linear in the length of `json`, which must be valid.
 *
 * @throws QueryError E0511, with position and JSON pointer
 */
export function requireExactNumbers(json: string): void {
  if (!mayRound(json)) return;
  let quoted = false;
  for (let at = 0; at < json.length; at++) {
    const char = json[at];
    if (char === '"') quoted = !quoted;
    else if (char === '\\' && quoted) at++;
    else if (!quoted && (char === '-' || isDigit(char))) {
      NUMBER.lastIndex = at;
      const [token = ''] = NUMBER.exec(json) ?? [];
      if (!isExact(token))
        throw queryError('inexactNumber', { pointer: pointerTo(json, at) }, positionOfIndex(json, at));
      at += Math.max(0, token.length - 1);
    }
  }
}

function isDigit(char: string | undefined): boolean {
  return char !== undefined && char >= '0' && char <= '9';
}

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
      if (top?.list === false && json[afterBlanks(json, end)] === ':')
        top.step = String(JSON.parse(json.slice(at, end)));
      at = end - 1;
    }
  }
  return path.map(({ step }) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

export function afterBlanks(json: string, from: number): number {
  let at = from;
  while (/\s/.test(json[at] ?? '')) at++;
  return at;
}

export function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}
