import type { Span } from '../../chunk.js';

/** What detectors of numbers have in common: where a match stands, and how check digits are worked out. */

export function spanOf(match: RegExpExecArray): Span {
  return { start: match.index, end: match.index + match[0].length };
}

/** Luhn's sum of decimal digits is a multiple of ten (ISO/IEC 7812-1). */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** The number modulo `modulus`, digit by digit: such numbers are longer than a double is exact. */
export function remainder(digits: string, modulus: number): number {
  let rest = 0;
  for (const digit of digits) rest = (rest * 10 + Number(digit)) % modulus;
  return rest;
}

/** Σ digit × weight. */
export function weighted(digits: string, weights: readonly number[]): number {
  return weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0);
}

/** Whether two digits each of year, month and day are a day of some year. */
export function isDay(month: number, day: number): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= (DAYS[month - 1] ?? 0);
}

const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;
