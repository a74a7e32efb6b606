/** What an embedder's vectors look like in a store. */
export type VectorLayout = LexicalLayout | DenseLayout;

/** Hashed BM25 weights for retrieval and hashed n-grams for the operators. */
interface LexicalLayout {
  readonly kind: 'lexical';
  readonly dimensions: number;
  /** `halfvec` says whole numbers up to 2,048 exactly, in half the room. */
  readonly type: 'vector' | 'halfvec';
}

/** One vector for both. */
export interface DenseLayout {
  readonly kind: 'dense';
  readonly dimensions: number;
  readonly type: 'vector' | 'halfvec';
}

/** Some models want to know which side of the search a text is on. */
export type TextRole = 'document' | 'query';

/**
 * Turns texts into vectors, in the order of the texts. Those of a dense layout have unit norm; those of the
 * lexical one have none, so compare them by cosine.
 */
export interface Embedder {
  /** As the manifest names it. */
  readonly model: string;
  /** Changes whenever vectors do; a store made under another fingerprint is not read. */
  readonly fingerprint: string;
  readonly layout: VectorLayout;
  /**
   * @returns one vector of `layout.dimensions` for each text
   * @throws ContentError `endpoint`, `malformedAnswer`
   */
  embed(texts: readonly string[], role: TextRole, signal?: AbortSignal): Promise<readonly Float32Array[]>;
  close(): Promise<void>;
}
