import type { EncoderName } from 'osl-compiler';
import type { ArgumentValues } from '../../model/facets/arguments.js';

/** What an encoder operator works on. */
export interface EncoderJob {
  readonly operator: EncoderName;
  readonly values: ArgumentValues;
  readonly query: string;
  readonly read: StoredVectors | OwnTexts;
  /** The vectors of `encoderTexts`; null where the thread is to work them out, by `lexical-v1`. */
  readonly embedded: readonly Float32Array[] | null;
}

/** Passages of a store. */
interface StoredVectors {
  readonly kind: 'stored';
  readonly passages: readonly {
    readonly chunkId: string;
    /** In Postgres' text format of `float4[]`. */
    readonly vector: string;
  }[];
}

/** Texts that no store holds; the thread makes their vectors, by `lexical-v1`. Each is known by its place, from 0. */
interface OwnTexts {
  readonly kind: 'texts';
  readonly texts: readonly string[];
}

export type FromEncoder =
  | { readonly kind: 'column'; readonly values: readonly unknown[] }
  | { readonly kind: 'failed'; readonly reason: string };
