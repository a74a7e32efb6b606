import type { Features, Grain, Joins } from 'osl-compiler';
import type { Language } from '../facets/retrieval-options.js';

/** A manifest as parsed from YAML, after the schema check. References have not been resolved yet. */
export interface ManifestDocument {
  readonly version: 1;
  readonly tenant?: string;
  readonly connectors: NamedMembers<ConnectorDocument>;
  readonly entities: NamedMembers<EntityDocument>;
  readonly relationships?: NamedMembers<RelationshipDocument>;
  readonly bridges?: NamedMembers<BridgeDocument>;
  readonly rerankers?: NamedMembers<RerankerDocument>;
  readonly rollups?: NamedMembers<RollupDocument>;
  readonly facets?: NamedMembers<FacetDocument>;
  readonly metrics?: NamedMembers<MetricDocument>;
  readonly lexicon?: NamedMembers<TermDocument>;
  readonly traverse?: { readonly max_per_hop?: number };
  readonly operators?: { readonly max_rows?: number };
  readonly features?: Partial<Features> & { readonly joins?: Joins };
  readonly raw_sql?: { readonly allow: readonly SourceDocument[] };
}

/** Members by name, in file order. The objects have no prototype. */
export type NamedMembers<T> = Readonly<Record<string, T>>;

export interface ConnectorDocument {
  readonly kind: 'pglite' | 'postgres';
  readonly url_env?: string;
  readonly standbys?: { readonly url_envs: readonly string[]; readonly max_lag_ms?: number };
  readonly row_security?: boolean;
  readonly tables: NamedMembers<{ readonly columns: NamedMembers<TableColumnDocument> }>;
}

export interface TableColumnDocument {
  readonly type: string;
  readonly stored?: string;
  readonly labels?: readonly string[];
  readonly pii?: boolean;
  readonly sensitivity?: string;
  readonly nullable?: boolean;
}

export type SourceDocument = string | { readonly connector: string; readonly table: string };

export type ColumnsDocument = readonly string[] | NamedMembers<ColumnDocument | null>;

export interface ColumnDocument {
  readonly column?: string;
  readonly description?: string;
}

export type Composition = 'structured' | 'structured+content' | 'content';

export interface EntityDocument {
  readonly description?: string;
  readonly deprecated?: string;
  readonly source: SourceDocument;
  readonly primary_key?: readonly string[];
  readonly entity_key_columns?: readonly string[];
  readonly columns: ColumnsDocument;
  readonly computed?: NamedMembers<ComputedDocument>;
  readonly time_dimension?: string;
  readonly composition?: Composition;
  readonly legs?: readonly string[];
  readonly derived?: NamedMembers<DerivedDocument>;
  readonly cache?: CacheDocument;
}

export interface CacheDocument {
  readonly max_age: number;
  readonly watermark?: string;
  readonly notify?: boolean;
}

export interface RollupDocument {
  readonly description?: string;
  readonly entity: string;
  readonly dimensions?: readonly string[];
  readonly time?: { readonly column: string; readonly grain: Grain };
  readonly measures?: readonly string[];
  readonly max_age: number;
}

interface ComputedDocument {
  readonly expression: string;
  readonly description?: string;
  readonly sensitivity?: string;
}

export interface DerivedDocument {
  readonly description?: string;
  readonly facet: string;
  readonly operator: 'CLASSIFY' | 'TAG';
  readonly labels: readonly unknown[];
  readonly min_score?: number;
  readonly threshold?: number;
}

interface RelationshipDocument {
  readonly description?: string;
  readonly deprecated?: string;
  readonly from: EndDocument;
  readonly to: EndDocument;
  readonly kind: 'many_to_one' | 'one_to_one';
}

/** One column such as `order.customer_id`; a list of columns if the key has several. */
export type EndDocument = string | readonly string[];

export interface BridgeDocument {
  readonly description?: string;
  readonly deprecated?: string;
  readonly source: SourceDocument;
  readonly left: SideDocument;
  readonly right: SideDocument;
  readonly primary_key?: readonly string[];
  readonly columns: ColumnsDocument;
}

export interface SideDocument {
  readonly entity: string;
  readonly columns: readonly string[];
}

interface EmbeddingDocument {
  readonly model: string;
  readonly endpoint?: { readonly protocol: EmbeddingProtocol; readonly url_env: string };
  readonly dimensions?: number;
  readonly query_prefix?: string;
  readonly passage_prefix?: string;
  readonly half_precision?: boolean;
}

export type EmbeddingProtocol = 'openai' | 'ollama' | 'voyage' | 'tei';

interface RerankerDocument {
  readonly protocol: RerankProtocol;
  readonly url_env: string;
  readonly model: string;
  readonly candidates?: number;
  readonly timeout_ms?: number;
  readonly concurrency?: number;
  readonly cache_mib?: number;
  readonly passages_per_day?: number;
}

export type RerankProtocol = 'cohere' | 'jina' | 'voyage' | 'tei';

export interface FacetDocument {
  readonly description?: string;
  readonly deprecated?: string;
  readonly source: SourceDocument;
  readonly entity: string;
  readonly entity_key: string;
  readonly document_id: string;
  readonly text: string;
  readonly metadata?: ColumnsDocument;
  readonly scalar_indexed?: readonly string[];
  readonly format?: 'text' | 'markdown' | 'html' | 'pdf';
  readonly chunking?: {
    readonly by?: 'structure' | 'heading' | 'page' | 'sentence' | 'fixed';
    readonly max_chars?: number;
    readonly overlap_chars?: number;
  };
  readonly embedding?: EmbeddingDocument;
  readonly versions: NamedMembers<{
    readonly redact?: readonly string[];
    readonly detectors?: readonly string[];
    readonly phone_countries?: readonly string[];
  }>;
  readonly labels?: readonly unknown[];
  readonly dictionary?: 'tenant' | 'key';
  readonly exceptions?: readonly string[];
  readonly retrieval: {
    readonly max_top_k: number;
    readonly approximate?: boolean;
    readonly hybrid?: boolean;
    readonly rerankers?: readonly string[];
    readonly language?: Language;
  };
}

interface MetricFormatDocument {
  readonly kind: 'number' | 'percent' | 'currency';
  readonly currency?: string;
  readonly unit?: string;
  readonly decimals?: number;
}

/** A metric as written; members that depend on its `type` are checked later. */
export interface MetricDocument {
  readonly description?: string;
  readonly deprecated?: string;
  readonly type?: 'simple' | 'ratio' | 'derived' | 'cumulative' | 'offset' | 'conversion';
  readonly entity?: string;
  readonly expression?: string;
  readonly filter?: string;
  readonly numerator?: MetricInputDocument;
  readonly denominator?: MetricInputDocument;
  readonly metric?: string;
  readonly window?: string;
  readonly grain_to_date?: Grain;
  readonly offset_window?: string;
  readonly offset_to_grain?: Grain;
  readonly base?: string;
  readonly conversion?: string;
  readonly constant_properties?: readonly { readonly base: string; readonly conversion: string }[];
  readonly calculation?: 'conversion_rate' | 'conversions';
  readonly format?: MetricFormatDocument;
}

export type MetricInputDocument = string | { readonly metric: string; readonly filter?: string };

interface TermDocument {
  readonly refers_to: string;
  readonly synonyms?: readonly string[];
}
