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

/** Languages that put no spaces between words; a dictionary is used to find the words. */
const UNSPACED_LANGUAGES = ['chinese', 'japanese', 'thai'] as const;

export type StemmedLanguage = (typeof STEMMED_LANGUAGES)[number];
export type UnspacedLanguage = (typeof UNSPACED_LANGUAGES)[number];

/** Allowed values of a facet's `retrieval.language`. */
export type Language = StemmedLanguage | UnspacedLanguage;

export const LANGUAGES: readonly Language[] = Object.freeze([...STEMMED_LANGUAGES, ...UNSPACED_LANGUAGES]);

export function isUnspaced(language: Language): language is UnspacedLanguage {
  return UNSPACED_LANGUAGES.some((name) => name === language);
}

/** The default model of a facet, since it needs no installation. */
export const LEXICAL_MODEL = 'lexical-v1';

/** Offline embedding models; each is in a package that the operator installs. */
export const MEANING_MODELS = ['words-v1', 'sentences-v1'] as const;
export type MeaningModel = (typeof MEANING_MODELS)[number];

export function isMeaningModel(model: string): model is MeaningModel {
  return MEANING_MODELS.some((name) => name === model);
}

/** True if passages are found by their words (BM25); the model's vectors are then used only by operators. */
export function findsByWords(model: string): boolean {
  return model === LEXICAL_MODEL || isMeaningModel(model);
}
