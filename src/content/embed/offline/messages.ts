import type { ContentErrorName } from '../../content-error.js';

/** What the thread of a model answers: once when it has loaded it, then a message for each list of texts. */
export type FromModel =
  | { readonly kind: 'opened'; readonly identity: string; readonly dimensions: number }
  | { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[] }
  | {
      readonly kind: 'failed';
      readonly code: ContentErrorName;
      readonly reason: string;
      readonly hint: string | null;
    };

/** What a text means, as a model in this process has it. */
export interface MeaningVectors {
  /** Package, version and settings: it changes whenever vectors do. */
  readonly identity: string;
  readonly dimensions: number;
  /** How much of a text's direction it is, beside the letters' 1. */
  readonly share: number;
  /** One vector for each text, of unit norm, or of zeros where the model knows none of its words. */
  vectors(texts: readonly string[]): Promise<readonly Float32Array[]>;
}
