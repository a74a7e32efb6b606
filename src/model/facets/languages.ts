const STEMMED_LANGUAGES = [
  'arabic',
  'armenian',
  'danish',
  'dutch',
  'english',
  'finnish',
  'french',
  'german',
  'greek',
  'hindi',
  'hungarian',
  'indonesian',
  'irish',
  'italian',
  'nepali',
  'norwegian',
  'portuguese',
  'romanian',
  'russian',
  'spanish',
  'swedish',
  'tamil',
  'turkish',
] as const;

/** Languages without spaces between words; a dictionary splits them. */
const UNSPACED_LANGUAGES = ['chinese', 'japanese', 'thai'] as const;

export type StemmedLanguage = (typeof STEMMED_LANGUAGES)[number];
export type UnspacedLanguage = (typeof UNSPACED_LANGUAGES)[number];

/** Values of a facet's `retrieval.language`. */
export type Language = StemmedLanguage | UnspacedLanguage;

export const LANGUAGES: readonly Language[] = Object.freeze([...STEMMED_LANGUAGES, ...UNSPACED_LANGUAGES]);

export function isUnspaced(language: Language): language is UnspacedLanguage {
  return UNSPACED_LANGUAGES.some((name) => name === language);
}
