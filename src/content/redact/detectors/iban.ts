import type { Span } from '../../chunk.js';
import { remainder } from './digits.js';

/** ISO 13616: a country, two check digits, and up to 30 letters and digits, whole or in groups. */
const CANDIDATE = /(?<![\p{L}\p{N}])[A-Za-z]{2}\d{2}(?:[ \u00a0.-]?[A-Za-z0-9]{1,4}){2,9}(?![\p{L}\p{N}])/gu;
/** Letters and digits of a country's code and its check. */
const CODE_AND_CHECK = 4;
/** Letters and digits of the shortest (Norway), and of the longest that the norm has room for. */
const LEAST = 15;
const MOST = 34;

export function ibans(text: string): readonly Span[] {
  const found: Span[] = [];
  const candidates = new RegExp(CANDIDATE);
  for (let match = candidates.exec(text); match !== null; match = candidates.exec(text)) {
    const { 0: candidate, index } = match;
    const length = ibanLength(candidate);
    if (length > 0) found.push({ start: index, end: index + length });
    // What it joined to itself may begin another.
    candidates.lastIndex = index + (length > 0 ? length : CODE_AND_CHECK);
  }
  return found;
}

/** UTF-16 units of the IBAN that `candidate` begins with, which a word behind it may have joined; 0 where it is none. */
function ibanLength(candidate: string): number {
  let end = candidate.length;
  while (end > 0) {
    const compact = candidate.slice(0, end).replace(/[^A-Za-z0-9]/g, '');
    if (compact.length < LEAST) return 0;
    if (compact.length <= MOST && isIban(compact)) return end;
    end = Math.max(...[' ', '\u00a0', '.', '-'].map((sign) => candidate.lastIndexOf(sign, end - 1)));
  }
  return 0;
}

function isIban(compact: string): boolean {
  const moved = `${compact.slice(4)}${compact.slice(0, 4)}`.toUpperCase();
  const digits = moved.replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55));
  return remainder(digits, 97) === 1;
}
