import type { DeclaredFacetVersion } from '../../../model/manifest/index.js';
import type { Span } from '../../chunk.js';
import { ContentError } from '../../content-error.js';
import { cards, ibans, nationalIds } from './national-id.js';
import { internationalPhones, nationalPhones, type PhoneNumbers } from './phone.js';
import { secrets, urlCredentials } from './secret.js';

/** Finds values of one kind, in UTF-16 offsets. Linear in the text's length. */
export type Detector = (text: string) => readonly Span[];

/** Values of `detectors` of a facet version. */
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

/** Detectors of a version, by name. @throws ContentError `unknownDetector`, `unknownCountry`, `notInstalled` */
export async function detectorsOf({
  detectors,
  phoneCountries,
}: Pick<DeclaredFacetVersion, 'detectors' | 'phoneCountries'>): Promise<
  readonly (readonly [string, Detector])[]
> {
  const named = detectors.map((name): [string, Detector] => [name, detectorNamed(name)]);
  if (phoneCountries.length === 0) return named;
  return [...named, ['phone', nationalPhones(phoneCountries, await phoneNumbers())]];
}

/** @throws ContentError `unknownDetector` */
export function detectorNamed(name: string): Detector {
  const known = DETECTOR_NAMES.find((n) => n === name);
  if (known !== undefined) return DETECTORS[known];
  throw new ContentError(
    'unknownDetector',
    `detector \`${name}\` is not known`,
    `detectors are ${DETECTOR_NAMES.join(', ')}`,
  );
}

/** Loaded on demand: numbering plans of all countries are large, and most facets need none. */
async function phoneNumbers(): Promise<PhoneNumbers> {
  try {
    return (await import('libphonenumber-js/max')) as unknown as PhoneNumbers; // its own types name each country
  } catch {
    throw new ContentError(
      'notInstalled',
      '`phone_countries` needs the package `libphonenumber-js`, which is not installed',
      'run `npm install libphonenumber-js` beside the gateway',
    );
  }
}

/** `@`, also full width, or as in URLs and HTML. */
const AT = /[@＠﹫]|%40|&#64;|&#x40;|&commat;/gi;
/** RFC 5321 allows 64 bytes before the sign and 255 after it. */
const LOCAL = /[\p{L}\p{N}\p{M}._%+'~-]{1,64}$/u;
const DOMAIN =
  /^(?:[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}-]{0,62})?[.．。]){1,8}\p{L}[\p{L}\p{M}\p{N}-]{1,62}/u;
const LONGEST_DOMAIN = 255;

function emails(text: string): readonly Span[] {
  const found: Span[] = [];
  for (const { 0: sign, index } of text.matchAll(AT)) {
    const local = LOCAL.exec(text.slice(Math.max(0, index - 64), index))?.[0].replace(/^[.'-]+/, '');
    const after = index + sign.length;
    const domain = DOMAIN.exec(text.slice(after, after + LONGEST_DOMAIN))?.[0];
    if (local === undefined || local === '' || domain === undefined) continue;
    found.push({ start: index - local.length, end: after + domain.length });
  }
  return found;
}
