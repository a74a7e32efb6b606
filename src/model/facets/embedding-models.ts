/** Default model of a facet: it needs no installation. */
export const LEXICAL_MODEL = 'lexical-v1';

/** Offline embedding models, each from a package that the operator installs. */
export const MEANING_MODELS = ['words-v1', 'sentences-v1'] as const;
export type MeaningModel = (typeof MEANING_MODELS)[number];

export function isMeaningModel(model: string): model is MeaningModel {
  return MEANING_MODELS.some((name) => name === model);
}

/** True if passages are found by their words (BM25); the model's vectors are then used by operators only. */
export function findsByWords(model: string): boolean {
  return model === LEXICAL_MODEL || isMeaningModel(model);
}
