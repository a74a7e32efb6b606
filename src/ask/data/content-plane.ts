import type { OperatorUse } from 'osl-compiler';

/** A passage that the caller may see, as its store holds it. */
export interface StoredPassage {
  readonly chunkId: string;
  readonly docId: string;
  readonly source: string;
  /** Offsets in the served version of the document. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly sha256: string;
  readonly redactedFields: readonly string[];
  readonly score: number;
  /** Unit vector for the encoder operators; null where no operator needs it. */
  readonly vector: Float32Array | null;
  /** The entity key and the metadata that the statement uses, in Postgres' text format. */
  readonly fields: ReadonlyMap<string, string | null>;
}

/** The words of a query in the lexical lane, as the store names them. */
export interface LexicalQuery {
  readonly terms: readonly number[];
  /**
   * The query as a sparse vector in pgvector's text format, weighted by how rare its words are among `documents`
   * passages of which `frequencies[i]` hold `terms[i]`, with the terms that any of them holds; null where none does.
   */
  weighted(
    documents: number,
    frequencies: readonly number[],
  ): { readonly vector: string; readonly terms: readonly number[] } | null;
}

/** An operator with its arguments' values. */
export interface OperatorCall {
  readonly use: OperatorUse;
  readonly values: ReadonlyMap<string, unknown>;
}

/** One value for each passage, in their order; failed rows are null and named in `errors`. */
export interface OperatorResult {
  readonly values: readonly unknown[];
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

/** What the spine needs of `src/content`: text to vectors, and operators over passages. It sees no policy. */
export interface ContentPlane {
  /**
   * Whether the store of a facet version may be read now.
   *
   * @returns its epoch, which differs after every change of a passage; it may be some seconds old
   * @throws QueryError E0522
   */
  ready(facet: string, version: string): Promise<string>;
  lexicalQuery(text: string): LexicalQuery;
  /** A query's embedding by the facet's declared model, in pgvector's text format. */
  embedQuery(facet: string, text: string): Promise<string>;
  /** Whether decoder operators have a model to ask. */
  readonly hasDecoder: boolean;
  /** Refuses wrong arguments before anything is retrieved. @throws QueryError E0511 */
  check(call: OperatorCall): void;
  /** `passages` are sorted by chunk id. */
  run(
    facet: string,
    call: OperatorCall,
    query: string,
    passages: readonly StoredPassage[],
    signal: AbortSignal | null,
  ): Promise<OperatorResult>;
}
