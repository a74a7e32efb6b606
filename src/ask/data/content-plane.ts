import type { OperatorUse } from 'osl-compiler';

/** A passage visible to the caller, as stored. */
export interface StoredPassage {
  readonly chunkId: string;
  readonly docId: string;
  readonly source: string;
  /** Offsets in the served document version. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly sha256: string;
  readonly redactedFields: readonly string[];
  /** True if the served version has replaced parts of the text. */
  readonly isTextRedacted: boolean;
  readonly score: number;
  /** Vector for the encoder operators, in Postgres' text format of `float4[]`; null if no operator needs it. */
  readonly vector: string | null;
  /** Entity key and used metadata, in Postgres' text format. */
  readonly fields: ReadonlyMap<string, string | null>;
}

/** The terms of a lexical query, by their ids in the store. */
export interface LexicalQuery {
  readonly terms: readonly number[];
  /** Each term as first written in the query, and its count, in query order. */
  written(): Promise<ReadonlyMap<number, { readonly term: string; readonly times: number }>>;
  /**
   * Ranges of `text` with terms of the query, in code points, end excluded, ascending and disjoint, at most a hundred;
   * and the count of each term.
   */
  occurrences(text: string): {
    readonly spans: readonly (readonly [number, number])[];
    readonly counts: ReadonlyMap<number, number>;
  };
  /**
   * The query as a sparse vector in pgvector's text format, weighted by rarity: `frequencies[i]` of `documents`
   * passages hold `terms[i]`. With the terms that occur at all, their rarities, and upper bounds of their scores. Null
   * if none occurs.
   */
  weighted(
    documents: number,
    frequencies: readonly number[],
  ): {
    readonly vector: string;
    readonly terms: readonly number[];
    readonly rarities: readonly number[];
    readonly mosts: readonly number[];
  } | null;
}

export interface OperatorCall {
  readonly use: OperatorUse;
  readonly values: ReadonlyMap<string, unknown>;
}

/** One value per passage, in order; null for failed ones, which are listed in `errors`. */
export interface OperatorResult {
  readonly values: readonly unknown[];
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

export interface DecoderUsage {
  /** Passages sent. */
  readonly passages: number;
  /** Including retries. */
  readonly requests: number;
  /** As reported by the server; 0 if unknown. */
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Passages answered from the cache. */
  readonly known: number;
}

export interface RerankUsage {
  /** Passages sent. */
  readonly passages: number;
  /** Including retries. */
  readonly requests: number;
  /** As reported by the server; 0 if unknown. */
  readonly tokens: number;
  /** Passages scored from the cache. */
  readonly known: number;
}

interface RerankCaller {
  readonly subject: string;
  readonly signal: AbortSignal | null;
  /** Called once, also if aborted. */
  readonly spend: (spent: RerankUsage) => void;
}

export interface OperatorCaller {
  readonly subject: string;
  readonly timeoutMs: number;
  readonly until: number;
  /** Called once, also if aborted. */
  readonly spend: (spent: DecoderUsage) => void;
  readonly signal: AbortSignal | null;
}

export interface ReadyStore {
  /** Changes whenever a passage changes. */
  readonly epoch: string;
  /** Time of the last incremental read of its source, UTC to the second (RFC 3339); null if unknown. */
  readonly indexedAt: string | null;
}

/** Interface to `src/content`: embeds text, and runs operators over passages. It sees no policy. */
export interface ContentPlane {
  /**
   * Checks that the store of a facet version is readable now.
   *
   * @returns its state, which may be some seconds old
   * @throws QueryError E0522
   */
  ready(facet: string, version: string): Promise<ReadyStore>;
  /**
   * `ReadyStore.indexedAt` of facets: the oldest of their versions and legs. Omits facets that are not fully indexed,
   * or whose database does not answer quickly.
   */
  indexedAt(facets: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * State of the data as a `pg_snapshot`, if only transactions of that server can change what the governed role reads
   * in `tables`; otherwise null.
   */
  settledAt(
    facet: string,
    tables: readonly { readonly schema: string; readonly table: string }[],
  ): Promise<string | null>;
  /** Terms of a query, tokenized as the facet's passages are. */
  lexicalQuery(facet: string, text: string): Promise<LexicalQuery>;
  embedQuery(facet: string, text: string): Promise<string>;
  readonly hasDecoder: boolean;
  /** Validates the arguments before anything is retrieved. @throws QueryError E0511 */
  check(call: OperatorCall): Promise<void>;
  /**
   * Runs an operator over `passages`, which are sorted by chunk id; encoders run in a separate thread, round robin
   * between callers.
   *
   * @throws QueryError E0511 if it is too much work, E0517 if it times out, E0516 if cancelled, E4290 if too many
   *   wait
   */
  run(
    facet: string,
    call: OperatorCall,
    query: string,
    passages: readonly StoredPassage[],
    by: OperatorCaller,
  ): Promise<OperatorResult>;
  /**
   * Runs an encoder operator over texts without a store, by `lexical-v1` in this process. Empty and NULL texts have no
   * value. DEDUP refers to texts by their index, from 0.
   *
   * @throws QueryError as `run`
   */
  runOverTexts(
    call: OperatorCall,
    texts: readonly (string | null)[],
    by: OperatorCaller,
  ): Promise<readonly unknown[]>;
  /**
   * Scores of how well each text answers `query`, finite numbers in order.
   *
   * @throws QueryError E0522 if the reranker fails, E4290 if the daily budget of the subject is used up, and the
   *   reason of `by.signal`
   */
  rerank(
    reranker: string,
    query: string,
    texts: readonly string[],
    by: RerankCaller,
  ): Promise<readonly number[]>;
}
