import type { Span } from '../../chunk.js';
import { passesLuhn } from './digits.js';

/** 13 to 19 digits, whole or in groups of one grouping sign (ISO/IEC 7812-1). */
const CANDIDATE =
  /(?<![\p{L}\p{N}.,+-])\d{3,6}(?:([ \u00a0-])\d{3,6}(?:\1\d{2,7}){1,3}|\d{7,16})(?![\p{L}\p{N}]|[.,-]\d)/gu;
/** Numbers that issuers of payment cards begin with, and how many digits such cards have. */
const ISSUERS: readonly (readonly [begins: RegExp, lengths: readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^(?:30[0-5]|3[68])/, [14, 16, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]],
  [/^62/, [16, 17, 18, 19]],
  [/^(?:5[06-8]|6)/, [13, 14, 15, 16, 17, 18, 19]],
  [/^220[0-4]/, [16, 17, 18, 19]],
];

export function cards(text: string): readonly Span[] {
  const found: Span[] = [];
  for (const { 0: match, index } of text.matchAll(CANDIDATE)) {
    const digits = match.replace(/\D/g, '');
    const issued = ISSUERS.some(
      ([begins, lengths]) => begins.test(digits) && lengths.includes(digits.length),
    );
    if (issued && passesLuhn(digits)) found.push({ start: index, end: index + match.length });
  }
  return found;
}
