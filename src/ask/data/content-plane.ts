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
  /** True if the version that is served has replaced something in the text. */
  readonly isTextRedacted: boolean;
  readonly score: number;
  /** Vector for the encoder operators, in Postgres' text format of `float4[]`; null if no operator needs it. */
  readonly vector: string | null;
  /** The entity key and the metadata that the statement uses, in Postgres' text format. */
  readonly fields: ReadonlyMap<string, string | null>;
}

/** The words of a query in the lexical lane, as the store names them. */
export interface LexicalQuery {
  readonly terms: readonly number[];
  /** Each term as the query writes it first, and how often it has it, in the order of the query. */
  written(): Promise<ReadonlyMap<number, { readonly term: string; readonly times: number }>>;
  /**
   * Positions at which `text` has terms of the query: spans from and to, in code points, end excluded, ascending and
   * disjoint, at most a hundred; and the number of times it has each term.
   */
  occurrences(text: string): {
    readonly spans: readonly (readonly [number, number])[];
    readonly counts: ReadonlyMap<number, number>;
  };
  /**
   * The query as a sparse vector in pgvector's text format, weighted by the rarity of its words among `documents`
   * passages of which `frequencies[i]` hold `terms[i]`; with the terms that occur in any of them, their rarities, and
   * upper bounds of what they add to a score. Null if none occurs.
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

/** Usage of the model by one decoder operator. */
export interface DecoderUsage {
  /** Passages that were sent. */
  readonly passages: number;
  /** Requests, retries included. */
  readonly requests: number;
  /** As reported by the server; 0 if it does not report them. */
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Passages whose answer came from the cache. */
  readonly known: number;
}

/** Usage of a reranker. */
export interface RerankSpent {
  /** Passages that were sent. */
  readonly passages: number;
  /** Requests, retries included. */
  readonly requests: number;
  /** As reported by the server; 0 if it does not report them. */
  readonly tokens: number;
  /** Passages whose scores came from the cache. */
  readonly known: number;
}

/** The caller that a reranker works for. */
interface RerankCaller {
  readonly subject: string;
  readonly signal: AbortSignal | null;
  /** Called once, even if it is stopped. */
  readonly spend: (spent: RerankSpent) => void;
}

/** The caller that an operator works for, and its time limits. */
export interface OperatorCaller {
  readonly subject: string;
  readonly timeoutMs: number;
  /** Deadline of the question on the clock of `performance.now()`. */
  readonly until: number;
  /** Called once for a decoder operator, even if it is stopped. */
  readonly spend: (spent: DecoderUsage) => void;
  readonly signal: AbortSignal | null;
}

/** A store that is ready to be read. */
export interface ReadyStore {
  /** Differs after every change of a passage. */
  readonly epoch: string;
  /** Time at which its source was last read in turn, in UTC to the second (RFC 3339); null if unknown. */
  readonly indexedAt: string | null;
}

/** Interface of the spine to `src/content`: embeds text, and runs operators over passages. It sees no policy. */
export interface ContentPlane {
  /**
   * Checks that the store of a facet version may be read now.
   *
   * @returns its state, which may be some seconds old
   * @throws QueryError E0522
   */
  ready(facet: string, version: string): Promise<ReadyStore>;
  /**
   * `ReadyStore.indexedAt` of whole facets: the oldest of their versions and legs. Facets that are not fully
   * indexed, and those whose database does not answer at once, are left out.
   */
  indexedAt(facets: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * The state of the data beside a facet's source, as Postgres writes a `pg_snapshot`, where nothing but transactions
   * of that server can change what `tables` hold for the governed role; null where something else might.
   */
  settledAt(
    facet: string,
    tables: readonly { readonly schema: string; readonly table: string }[],
  ): Promise<string | null>;
  /** The words of a query, read as those of the facet's passages are. */
  lexicalQuery(facet: string, text: string): Promise<LexicalQuery>;
  /** A query's embedding by the facet's declared model, in pgvector's text format. */
  embedQuery(facet: string, text: string): Promise<string>;
  /** True if a model for decoder operators is configured. */
  readonly hasDecoder: boolean;
  /** Refuses wrong arguments before anything is retrieved. @throws QueryError E0511 */
  check(call: OperatorCall): Promise<void>;
  /**
   * `passages` are sorted by chunk id. An encoder operator runs in a thread of its own, in turns with other callers.
   *
   * @throws QueryError E0511 if it is too much work, E0517 if it times out, E0516 if cancelled, E4290 if too many wait
   */
  run(
    facet: string,
    call: OperatorCall,
    query: string,
    passages: readonly StoredPassage[],
    by: OperatorCaller,
  ): Promise<OperatorResult>;
  /**
   * The column of an encoder operator over texts that no store holds, in their order: by `lexical-v1`, within this
   * process. NULL, and what is empty, has no value. DEDUP names the first of a group by its place in `texts`, from 0.
   *
   * @throws QueryError as `run`
   */
  runOverTexts(
    call: OperatorCall,
    texts: readonly (string | null)[],
    by: OperatorCaller,
  ): Promise<readonly unknown[]>;
  /**
   * Scores of a reranker for how well each of `texts` answers `query`: one finite number for each, in their order.
   *
   * @throws QueryError E0522 where it fails or answers anything else, E4290 where `by.subject` has sent enough today,
   *   and what stops the question
   */
  rerank(
    reranker: string,
    query: string,
    texts: readonly string[],
    by: RerankCaller,
  ): Promise<readonly number[]>;
}
