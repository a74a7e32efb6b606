import type { DeclaredFacetVersion } from '../../../model/manifest/index.js';
import type { Span } from '../../chunk.js';
import { ContentError } from '../../content-error.js';
import { cards } from './card.js';
import { emails } from './email.js';
import { ibans } from './iban.js';
import { nationalIds } from './national-id.js';
import { internationalPhones, nationalPhones, type PhoneNumbers } from './phone.js';
import { secrets } from './secret.js';
import { urlCredentials } from './url-credentials.js';

/** Finds what looks like a kind of value, in UTF-16 offsets. Linear in the text's length. */
export type Detector = (text: string) => readonly Span[];

/** What a facet version may name under `detectors`. */
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

/** The detectors of a version, by name. @throws ContentError `unknownDetector`, `unknownCountry`, `notInstalled` */
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

/** Numbering plans of all countries are large, and most facets need none. */
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
