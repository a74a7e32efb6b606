import type { OperatorUse } from 'osl-compiler';

/** A passage visible to the caller, as stored. */
export interface StoredPassage {
  readonly chunkId: string;
  readonly docId: string;
  readonly source: string;
  /** Offsets of the passage in the served version of the document. */
  readonly start: number;
  readonly end: number;
  readonly text: string;
  readonly sha256: string;
  readonly redactedFields: readonly string[];
  /** True if parts of the text are replaced in the served version. */
  readonly isTextRedacted: boolean;
  readonly score: number;
  /** The vector for encoder operators, as a Postgres `float4[]` in text format; null if no operator needs it. */
  readonly vector: string | null;
  /** The entity key and the metadata in use, in Postgres' text format. */
  readonly fields: ReadonlyMap<string, string | null>;
}

/** The terms of a lexical query, identified by their ids in the store. */
export interface QueryTerms {
  readonly terms: readonly number[];
  /** Terms in query order, each with its first spelling and its number of occurrences in the query. */
  spellings(): Promise<ReadonlyMap<number, { readonly term: string; readonly times: number }>>;
  /**
   * Returns the ranges of `text` that contain query terms, in code points with the end excluded, in ascending order
   * without overlap, at most a hundred. Also counts the occurrences of each term.
   */
  occurrences(text: string): {
    readonly spans: readonly (readonly [number, number])[];
    readonly counts: ReadonlyMap<number, number>;
  };
  /**
   * Returns the query as a sparse vector in pgvector's text format, with terms weighted by rarity; `frequencies[i]` of
   * `documents` passages contain `terms[i]`. Also returns the terms found in any passage, with their rarity and maximum
   * score contribution. Returns null if no passage contains a term.
   */
  toSparseVector(
    documents: number,
    frequencies: readonly number[],
  ): {
    readonly vector: string;
    readonly terms: readonly number[];
    readonly rarities: readonly number[];
    readonly maxScores: readonly number[];
  } | null;
}

export interface OperatorCall {
  readonly use: OperatorUse;
  readonly values: ReadonlyMap<string, unknown>;
}

/** One value per passage, in order; null for passages that failed, which are listed in `errors`. */
export interface OperatorResult {
  readonly values: readonly unknown[];
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

export interface DecoderUsage {
  /** Number of passages sent. */
  readonly passages: number;
  /** Number of requests, including retries. */
  readonly requests: number;
  /** Number of tokens reported by the server; 0 if unknown. */
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Estimated tokens of requests for which the server reported none. */
  readonly unreportedTokens: number;
  /** Number of passages answered from the cache. */
  readonly cached: number;
}

export interface RerankUsage {
  /** Number of passages sent. */
  readonly passages: number;
  /** Number of requests, including retries. */
  readonly requests: number;
  /** Number of tokens reported by the server; 0 if unknown. */
  readonly tokens: number;
  /** Estimated tokens of requests for which the server reported none. */
  readonly unreportedTokens: number;
  /** Number of passages scored from the cache. */
  readonly cached: number;
}

export interface OperatorCaller {
  readonly subject: string;
  readonly timeoutMs: number;
  readonly until: number;
  /** Called exactly once with the usage, even if the call is aborted. */
  readonly onUsage: (usage: DecoderUsage) => void;
  readonly signal: AbortSignal | null;
}

export interface ReadyStore {
  /** Identifies the state of the store; changes whenever a passage changes. */
  readonly epoch: string;
  /** Time of the last incremental read of the source, in UTC to the second (RFC 3339); null if unknown. */
  readonly indexedAt: string | null;
  /** Time by which this state was committed (clock of `performance.now()`); earlier reads may see an older state. */
  readonly since: number;
}

/** Interface to `src/content`, which embeds texts and runs operators over passages but never sees the policy. */
export interface ContentPlane {
  /**
   * Checks that the store of a facet version is readable now.
   *
   * @returns its state, which may be some seconds old
   * @throws QueryError E0522
   */
  ready(facet: string, version: string): Promise<ReadyStore>;
  /**
   * Returns `ReadyStore.indexedAt` for each facet: the oldest among its versions and legs (lexical and dense). Facets
   * are omitted if they are not fully indexed or their database does not answer quickly.
   */
  indexedAt(facets: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Returns the current `pg_snapshot` of the store's server; null if anything other than transactions of that server
   * can change what the governed role reads in `tables`.
   */
  settledAt(
    facet: string,
    tables: readonly { readonly schema: string; readonly table: string }[],
  ): Promise<string | null>;
  /** Tokenizes a query in the same way as the facet's passages. */
  lexicalQuery(facet: string, text: string): Promise<QueryTerms>;
  embedQuery(facet: string, text: string): Promise<string>;
  readonly hasDecoder: boolean;
  /** Validates the arguments before anything is retrieved. @throws QueryError E0511 */
  check(call: OperatorCall): Promise<void>;
  /**
   * Runs an operator over `passages`, which are sorted by chunk id. Encoders run in a separate thread that serves
   * callers round robin.
   *
   * @throws QueryError E0511 if the input is too large, E0517 on timeout, E0516 if cancelled, E4290 if too many calls
   *   are waiting
   */
  run(
    facet: string,
    call: OperatorCall,
    query: string,
    passages: readonly StoredPassage[],
    caller: OperatorCaller,
  ): Promise<OperatorResult>;
  /**
   * Runs an encoder operator over texts without a store, using `lexical-v1` in this process. Empty and NULL texts have
   * no value. DEDUP refers to texts by index, starting at 0.
   *
   * @throws the errors of `run`
   */
  runOverTexts(
    call: OperatorCall,
    texts: readonly (string | null)[],
    caller: OperatorCaller,
  ): Promise<readonly unknown[]>;
  /**
   * Scores how well each text answers `query`; returns finite numbers, in order.
   *
   * @throws QueryError E0522 if the reranker fails, E4290 if the daily budget of the subject is used up, and the
   *   reason of `caller.signal`
   */
  rerank(
    reranker: string,
    query: string,
    texts: readonly string[],
    caller: Pick<OperatorCaller, 'subject' | 'signal'> & { readonly onUsage: (usage: RerankUsage) => void },
  ): Promise<readonly number[]>;
}
