import { ContentError } from '../content-error.js';

/** Format of an embedder's vectors in a store. */
export type VectorLayout = LexicalLayout | DenseLayout;

/** Hashed BM25 weights for retrieval, and hashed n-gram vectors for operators. */
interface LexicalLayout {
  readonly kind: 'lexical';
  readonly dimensions: number;
  /** `halfvec` represents integers up to 2,048 exactly, in half the space of `vector`. */
  readonly type: 'vector' | 'halfvec';
}

/** One vector, used for both retrieval and operators. */
export interface DenseLayout {
  readonly kind: 'dense';
  readonly dimensions: number;
  readonly type: 'vector' | 'halfvec';
}

/** Role of a text in a search; some models embed documents and queries differently. */
export type TextRole = 'document' | 'query';

/**
 * Turns texts into vectors, in the order of the texts. Dense vectors have unit norm; lexical ones do not, so compare
 * them by cosine.
 */
export interface Embedder {
  readonly model: string;
  /** Changes whenever the vectors would change; a store with a different fingerprint is not read. */
  readonly fingerprint: string;
  readonly layout: VectorLayout;
  /**
   * @returns one vector of `layout.dimensions` per text
   * @throws ContentError `endpoint`, `malformedAnswer`
   */
  embed(texts: readonly string[], role: TextRole, signal?: AbortSignal): Promise<readonly Float32Array[]>;
  close(): Promise<void>;
}

/**
 * Normalizes a vector from a model's response.
 *
 * @throws ContentError `malformedAnswer` if the width differs, a number is not finite, or the norm is 0
 */
export function unitVector(values: ArrayLike<number>, width: number | null): Float32Array {
  if (values.length === 0 || (width !== null && values.length !== width)) {
    throw malformed(`a vector of ${values.length} numbers${width === null ? '' : `, not of ${width}`}`);
  }
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += (values[i] ?? Number.NaN) ** 2;
  if (!Number.isFinite(squares)) throw malformed('a vector with a number that is not finite');
  if (squares === 0) throw malformed('a vector of zeros');
  const norm = Math.sqrt(squares);
  return Float32Array.from({ length: values.length }, (_, i) => (values[i] ?? 0) / norm);
}

export function malformed(what: string): ContentError {
  return new ContentError('malformedAnswer', `the embedding model answered ${what}`);
}

/** Truncates `text` to at most `limit` UTF-16 code units, without splitting a surrogate pair. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const unit = text.charCodeAt(limit - 1);
  return text.slice(0, unit >= 0xd800 && unit < 0xdc00 ? limit - 1 : limit);
}
