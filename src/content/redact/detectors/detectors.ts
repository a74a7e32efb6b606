import type { DeclaredFacetVersion } from '../../../model/manifest/index.js';
import type { TextSpan } from '../../chunk.js';
import { ContentError } from '../../content-error.js';
import { digitOf } from '../fold.js';
import { cards, groupedNumbers, ibans, nationalIds, spanOf } from './national-id.js';

/** Finds values of one kind and returns their UTF-16 offsets. Takes time linear in the length of the text. */
export type Detector = (text: string) => readonly TextSpan[];

/** Allowed values of `detectors` in a facet version. */
export const DETECTOR_NAMES = [
  'email',
  'phone',
  'secret',
  'iban',
  'card',
  'national_id',
  'url_credentials',
] as const;
type DetectorName = (typeof DETECTOR_NAMES)[number];

const DETECTORS: Readonly<Record<DetectorName, Detector>> = {
  email: emails,
  phone: internationalPhones,
  secret: secrets,
  iban: ibans,
  card: cards,
  national_id: nationalIds,
  url_credentials: urlCredentials,
};

/** Returns a version's named detectors. @throws ContentError `unknownDetector`, `unknownCountry`, `notInstalled` */
export async function detectorsOf({
  detectors,
  phoneCountries,
}: Pick<DeclaredFacetVersion, 'detectors' | 'phoneCountries'>): Promise<
  readonly (readonly [string, Detector])[]
> {
  const named = detectors.map((name): [string, Detector] => [name, detectorNamed(name)]);
  if (phoneCountries.length === 0) return named;
  return [...named, ['phone', overAscii(nationalPhones(phoneCountries, await phoneNumbers()))]];
}

/** @throws ContentError `unknownDetector` */
export function detectorNamed(name: string): Detector {
  const known = DETECTOR_NAMES.find((n) => n === name);
  if (known !== undefined) return overAscii(DETECTORS[known]);
  throw new ContentError(
    'unknownDetector',
    `detector \`${name}\` is not known`,
    `detectors are ${DETECTOR_NAMES.join(', ')}`,
  );
}

/** Makes a detector read digits, spaces and hyphens of all kinds as those of ASCII. */
function overAscii(detect: Detector): Detector {
  return (text) => detect(/^[\0-\x7f]*$/.test(text) ? text : text.replace(NOT_ASCII, asciiOf));
}

/** Digits of all scripts, spaces of all widths, full-width characters, and other hyphens between digits. */
const NOT_ASCII = /(?!\d)\p{Nd}|(?! )\p{Zs}|[！-～]|(?<=\p{Nd})[‐‑‒–−﹣](?=\p{Nd})/gu;

/** Returns the ASCII character for a match of `NOT_ASCII`; never changes the length, so that offsets stay valid. */
function asciiOf(character: string): string {
  if (character.length > 1) return character;
  if (/\p{Nd}/u.test(character)) return digitOf(character);
  if (/\p{Zs}/u.test(character)) return ' ';
  return /[！-～]/.test(character) ? character.normalize('NFKC') : '-';
}

/** Loads `libphonenumber-js` on demand: its numbering plans are large, and most facets do not need them. */
async function phoneNumbers(): Promise<PhoneNumbers> {
  try {
    return (await import('libphonenumber-js/max')) as unknown as PhoneNumbers; // cast: its country type is a union
  } catch {
    throw new ContentError(
      'notInstalled',
      '`phone_countries` needs the package `libphonenumber-js`, which is not installed',
      'run `npm install libphonenumber-js` beside the gateway',
    );
  }
}

/** The at sign, including its full-width forms and its encodings in URLs and HTML. */
const AT = /[@＠﹫]|%40|&#64;|&#x40;|&commat;/gi;
/** Local part of an e-mail address. RFC 5321 allows 64 bytes before the at sign and 255 after it. */
const LOCAL = /[\p{L}\p{N}\p{M}._%+'~-]{1,64}$/u;
const DOMAIN =
  /^(?:[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}-]{0,62})?[.．。]){1,8}\p{L}[\p{L}\p{M}\p{N}-]{1,62}/u;
const LONGEST_DOMAIN = 255;

function emails(text: string): readonly TextSpan[] {
  const found: TextSpan[] = [];
  for (const { 0: sign, index } of text.matchAll(AT)) {
    const local = LOCAL.exec(text.slice(Math.max(0, index - 64), index))?.[0].replace(/^[.'-]+/, '');
    const after = index + sign.length;
    const domain = DOMAIN.exec(text.slice(after, after + LONGEST_DOMAIN))?.[0];
    if (local === undefined || local === '' || domain === undefined) continue;
    found.push({ start: index - local.length, end: after + domain.length });
  }
  return found;
}

/** Phone number candidates: international with a plus, or North American with an area code. Need 8 to 15 digits. */
const INTERNATIONAL =
  /(?<![\p{L}\p{N}+])(?:\+\d{1,3}[ .\-/]?(?:\(\d{1,5}\)[ .\-/]?)?\d{1,5}(?:[ .\-/]?\d{1,5}){1,5}|\(?\d{3}\)?[ .-]\d{3}[.-]\d{4})(?![\p{L}\p{N}])/gu;

/**
 * Phone number candidates as grouped within a country, possibly with brackets around an area code or trunk zero. After
 * another number, only those that begin with a bracket or a zero.
 */
const NATIONAL =
  /(?<![\p{L}\p{N}+.,/-])(?:(?<!\d )|(?=[(0]))(?:\(0?\d{1,5}\)[ ./-]?\d{1,8}|0\d{0,14}|\d{1,6})(?:[ ./-]{1,2}\d{1,8}){0,6}(?![\p{L}\p{N}]|[.,/-]\d)/gu;

/** Matches dates, which are excluded because they have as many digits as phone numbers. */
const DATE = /^(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2})$/;

const LEAST_DIGITS = 7;
const MOST_DIGITS = 15;

function internationalPhones(text: string): readonly TextSpan[] {
  return groupedNumbers(text, INTERNATIONAL, (written) => hasDigits(written, LEAST_DIGITS + 1));
}

function hasDigits(written: string, least: number): boolean {
  const digits = written.replace(/\D/g, '').length;
  return digits >= least && digits <= MOST_DIGITS;
}

/** The part of `libphonenumber-js` that we use. */
interface PhoneNumbers {
  isSupportedCountry(country: string): boolean;
  isValidPhoneNumber(text: string, country: string): boolean;
}

/**
 * Finds phone numbers in national format that are valid in the numbering plan of one of `countries` (ISO 3166-1
 * alpha-2).
 *
 * @throws ContentError `unknownCountry`
 */
function nationalPhones(
  countries: readonly string[],
  numbers: PhoneNumbers,
): (text: string) => readonly TextSpan[] {
  const unknown = countries.find((country) => !numbers.isSupportedCountry(country));
  if (unknown !== undefined)
    throw new ContentError(
      'unknownCountry',
      `no numbering plan is known of country \`${unknown}\``,
      'countries are two letters of ISO 3166-1: `DE`, `GB`, `US`',
    );
  return (text) =>
    groupedNumbers(
      text,
      NATIONAL,
      (written, run) =>
        (written === run || /^\(?0/.test(written)) &&
        hasDigits(written, LEAST_DIGITS) &&
        !DATE.test(written) &&
        countries.some((country) => numbers.isValidPhoneNumber(written, country)),
    );
}

/**
 * Matches tokens with a prefix that identifies their kind or service, and private keys in PEM format. The end of a token
 * has no limit, since a mask within a word would let the next match begin there, one more in each round of `redact`.
 */
const MARKED: readonly RegExp[] = [
  /\bgh[opsur]_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bglpat-[\w-]{16,}/g,
  /\bnpm_[A-Za-z0-9]{20,}/g,
  /\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_][\w-]{12,}/g,
  /\bsk-[A-Za-z0-9]{20,}/g,
  /\bxox[abeoprs]-[\w-]{10,}/g,
  /\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16,}/g,
  /\bAIza[\w-]{30,}/g,
  /\bSG\.[\w-]{16,32}\.[\w-]{16,}/g,
  /\bhf_[A-Za-z0-9]{20,}/g,
  /\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,4000}\.[\w-]*/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,8000}?-----END [A-Z ]{0,40}PRIVATE KEY-----/g,
];
/** Matches a password in a URL. As in browsers, the last at sign ends it. */
const IN_URL = /(?<=:\/\/[^\s:/@]{0,64}:)[^\s/[\]]{3,128}(?=@)/g;
/** Matches a value assigned to a name that suggests a secret. */
const ASSIGNED =
  /(?<=(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|auth)["']?\s{0,3}[:=]\s{0,3}["']?)[A-Za-z0-9_+/=.~-]{12,255}/gi;
/** Matches possible tokens. Slashes are excluded, so that the parts of a path are checked separately. */
const TOKEN = /[A-Za-z0-9_+=-]{24,255}/g;
const LEAST_BITS = 4.2;
/**
 * Minimum number of runs of one kind of character (see `changesOfKind`), per character: a run is about a syllable long
 * in identifiers, and about two characters in random text.
 */
const LEAST_CHANGES = 0.33;

function secrets(text: string): readonly TextSpan[] {
  const found: TextSpan[] = [];
  for (const pattern of [...MARKED, IN_URL])
    for (const match of text.matchAll(pattern)) found.push(spanOf(match));
  for (const match of text.matchAll(ASSIGNED)) if (isMixed(match[0])) found.push(spanOf(match));
  for (const match of text.matchAll(TOKEN)) if (looksRandom(match[0])) found.push(spanOf(match));
  return found;
}

function isMixed(token: string): boolean {
  return /\d/.test(token) && /[A-Za-z]/.test(token);
}

/**
 * True for an irregular mix of upper case, lower case and digits. Hexadecimal hashes (frequent in change logs), paths
 * and identifiers are not matched.
 */
function looksRandom(token: string): boolean {
  const digits = token.replace(/\D/g, '').length;
  if (digits < 3 || !/[a-z]/.test(token) || !/[A-Z]/.test(token) || /^[0-9a-fA-F-]+$/.test(token))
    return false;
  if (token.split(/[_-]/).every((part) => part.length < 20)) return false;
  return changesOfKind(token) >= token.length * LEAST_CHANGES && bitsPerCharacter(token) >= LEAST_BITS;
}

/** Number of runs of lower-case letters, of upper-case letters, and of digits. */
function changesOfKind(token: string): number {
  return token.match(/[a-z](?![a-z])|[A-Z](?![A-Z])|\d(?!\d)/g)?.length ?? 0;
}

/** Shannon entropy of the token's characters. */
function bitsPerCharacter(token: string): number {
  const counts = new Map<string, number>();
  for (const c of token) counts.set(c, (counts.get(c) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / token.length) * Math.log2(count / token.length);
  return bits;
}

/**
 * Matches the user and password in `scheme://user:password@host`, or the token in `scheme://token@host`. As in browsers,
 * the last at sign ends them.
 */
const USER_INFO = /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/?#"'<>]{1,256}(?=@[\p{L}\p{N}[])/giu;

function urlCredentials(text: string): readonly TextSpan[] {
  return [...text.matchAll(USER_INFO)].map(({ 0: match, index }) => ({
    start: index,
    end: index + match.length,
  }));
}
