import type { Span } from '../../chunk.js';
import { ContentError } from '../../content-error.js';

/** International form with a plus, or North American with area code; 8 to 15 digits. */
const INTERNATIONAL =
  /(?<![\p{L}\p{N}+])(?:\+\d{1,3}[ .\-/]?(?:\(\d{1,5}\)[ .\-/]?)?\d{1,5}(?:[ .\-/]?\d{1,5}){1,5}|\(?\d{3}\)?[ .-]\d{3}[.-]\d{4})(?![\p{L}\p{N}])/gu;

/** Digits as grouped within a country, with brackets around an area code or a trunk zero. */
const NATIONAL =
  /(?<![\p{L}\p{N}+.,/-])(?:\(0?\d{1,5}\)[ \u00a0./-]?)?\d{1,6}(?:[ \u00a0./-]{1,2}\d{1,8}){0,6}(?![\p{L}\p{N}]|[.,/-]\d)/gu;

/** Dates have as many digits. */
const DATE = /^(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})$/;

const LEAST_DIGITS = 7;
const MOST_DIGITS = 15;

export function internationalPhones(text: string): readonly Span[] {
  return matches(text, INTERNATIONAL, (digits) => digits >= LEAST_DIGITS + 1);
}

/** Used part of `libphonenumber-js`. */
export interface PhoneNumbers {
  isSupportedCountry(country: string): boolean;
  isValidPhoneNumber(text: string, country: string): boolean;
}

/**
 * Finds numbers as written within `countries` (ISO 3166-1 alpha-2) that are valid in the numbering plan of one of
 * them.
 *
 * @throws ContentError `unknownCountry`
 */
export function nationalPhones(
  countries: readonly string[],
  numbers: PhoneNumbers,
): (text: string) => readonly Span[] {
  const unknown = countries.find((country) => !numbers.isSupportedCountry(country));
  if (unknown !== undefined)
    throw new ContentError(
      'unknownCountry',
      `no numbering plan is known of country \`${unknown}\``,
      'countries are two letters of ISO 3166-1: `DE`, `GB`, `US`',
    );
  return (text) =>
    matches(
      text,
      NATIONAL,
      (_, written) =>
        !DATE.test(written) && countries.some((country) => numbers.isValidPhoneNumber(written, country)),
    );
}

function matches(
  text: string,
  form: RegExp,
  isOne: (digits: number, written: string) => boolean,
): readonly Span[] {
  const found: Span[] = [];
  for (const { 0: written, index } of text.matchAll(form)) {
    const digits = written.replace(/\D/g, '').length;
    if (digits >= LEAST_DIGITS && digits <= MOST_DIGITS && isOne(digits, written))
      found.push({ start: index, end: index + written.length });
  }
  return found;
}
