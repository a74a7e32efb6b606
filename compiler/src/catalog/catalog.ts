import { groupBy } from '../functions/define.js';
import type { ColumnForm } from '../types/column-form.js';
import type { TypeName } from '../types/types.js';
import type { Features } from './features.js';
import type { Grain, PeriodSpan } from './grain.js';

/** The published semantic model. Frozen; created once per manifest version. */
export interface Catalog {
  /** Content hash of the manifest, part of every cache key. */
  readonly version: string;
  /** By name; names are unique over all kinds. */
  readonly relations: ReadonlyMap<string, Relation>;
  readonly metrics: ReadonlyMap<string, Metric>;
  /** By name. Each is also in `relations`, with its metadata as columns, so that grants can refer to it. */
  readonly facets: ReadonlyMap<string, FacetStore>;
  /** Links between entities for TRAVERSE, in declared order. */
  readonly edges: readonly Edge[];
  /** Maximum `per_hop` of TRAVERSE. Default: 100,000. */
  readonly maxPerHop?: number;
  /** Maximum number of rows that operators of one SELECT may process. */
  readonly maxOperatedRows?: number;
  /**
   * Tables that raw SQL may name: `schema.table` to the entity or bridge that governs it. Absent if raw SQL is not
   * allowed.
   */
  readonly rawTables?: ReadonlyMap<string, Relation>;
  /** Join rule. Default: `declared`. */
  readonly joins?: Joins;
  /** Features that the tenant allows. Default: all. */
  readonly features?: Features;
  /** In declared order. */
  readonly rollups?: readonly Rollup[];
}

/**
 * A table with pre-aggregated rows of an entity: counts and aggregates for each combination of dimension values.
 * Contains all rows of the entity, regardless of access.
 */
export interface Rollup {
  readonly name: string;
  readonly entity: string;
  readonly schema: string;
  /** The name contains a fingerprint of the definition, so a changed definition uses another table. */
  readonly table: string;
  readonly dimensions: readonly string[];
  /** Time column of the entity, truncated to `grain` in UTC and stored as timestamp in column `#t`. */
  readonly time: { readonly column: string; readonly grain: Grain } | null;
  readonly measures: readonly RollupMeasure[];
}

export interface RollupMeasure {
  readonly column: string;
  /** Number of non-NULL values. */
  readonly count: RolledColumn;
  readonly sum: RolledColumn | null;
  readonly min: RolledColumn | null;
  readonly max: RolledColumn | null;
}

export interface RolledColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** `declared`: joins on sealed keys only. `any`: on any predicate, as in raw SQL. */
export type Joins = 'declared' | 'any';

/**
 * A relation that can be scanned. A `bridge` (junction table) can be joined but not used alone in FROM. A `facet` is
 * text about an entity, read by RETRIEVE only.
 */
export interface Relation {
  readonly kind: 'entity' | 'bridge' | 'facet';
  readonly name: string;
  readonly description: string | null;
  /** Name of the connector; a query may use only one. */
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  /** In declared order, which is the order of `*`. */
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Columns that joins may use: the contract's `entity_key_columns`. */
  readonly sealedKeys: readonly string[];
  /** Columns computed from its own columns and from those of parents. Default: none. */
  readonly computed?: readonly ComputedColumn[];
  /** Time column that serves as `metric_time` of its metrics. */
  readonly timeDimension?: string;
  /** Rollup whose table is read instead of the entity's own. */
  readonly rollup?: string;
}

export interface Column {
  readonly name: string;
  /** Name in the upstream table. */
  readonly physical: string;
  readonly type: TypeName;
  /** Database type, if it is not a supported type; `type` is then that of its text form. See `types/column-form.ts`. */
  readonly stored?: string;
  /** Labels of an enum in order, if the manifest declares them. */
  readonly labels?: readonly string[];
  /** Modifiers of the declared type, as in `varchar(20)`. */
  readonly form?: ColumnForm;
  readonly description: string | null;
  readonly nullable: boolean;
  /** Sensitivity label declared at the connector (`pii`, `secret`, …). */
  readonly sensitivity: string | null;
  /** Columns of one domain hash to equal values for equal inputs, so they can be joined under a `hash` mask. */
  readonly keyDomain: string | null;
}

/**
 * A virtual column: an expression that replaces the column's name in queries before policy applies. Hidden from callers
 * who may not see all columns it reads.
 */
export interface ComputedColumn {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
  /** In OSL-SQL: `price - cost`, `customer.country`. */
  readonly expression: string;
  /** All declared columns that it reads, keys used to reach parents included. */
  readonly reads: readonly ReadColumn[];
  /** Columns used to reach parents. */
  readonly keys: readonly ReadColumn[];
  /** Its own label, in addition to those of the columns it reads. */
  readonly sensitivity: string | null;
  /** Own labels of this column and of computed columns it is built from. Callers must be granted each unmasked. */
  readonly labels: readonly OwnLabel[];
}

/** A sensitivity label that grants on `relation` must show unmasked. */
export interface OwnLabel {
  readonly relation: string;
  readonly label: string;
}

export interface ReadColumn {
  readonly relation: string;
  readonly column: string;
}

/** Expressions and filters are written in OSL-SQL. */
export type Metric = SimpleMetric | RatioMetric | DerivedMetric | CumulativeMetric | ConversionMetric;

/** An aggregate over the rows of one entity. */
export interface SimpleMetric {
  readonly type: 'simple';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  readonly entity: string;
  /** Aggregate expression over the entity's columns, e.g. `sum(install_bytes)`. */
  readonly expression: string;
  readonly filter: string | null;
}

/** Quotient of two metrics, each aggregated separately. */
export interface RatioMetric {
  readonly type: 'ratio';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** Null if the inputs are from several entities. */
  readonly entity: string | null;
  readonly numerator: MetricInput;
  readonly denominator: MetricInput;
}

/** `filter`: an additional predicate over the entity's columns, or null. */
export interface MetricInput {
  readonly metric: string;
  readonly filter: string | null;
}

/** An expression over metrics, e.g. `revenue - refunds`. */
export interface DerivedMetric {
  readonly type: 'derived';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** Null if the inputs are from several entities. */
  readonly entity: string | null;
  readonly expression: string;
}

/** A metric over all rows up to the end of a period, or over a span that ends with it. */
export interface CumulativeMetric {
  readonly type: 'cumulative';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  readonly entity: string;
  /** A metric of one entity that is not cumulative. */
  readonly metric: string;
  readonly span: PeriodSpan;
}

/** Number of events that were followed by another event of the same entity. */
export interface ConversionMetric {
  readonly type: 'conversion';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** Entity of the base events. */
  readonly entity: string;
  /** Simple metric whose filter selects the base events. */
  readonly base: string;
  /** Simple metric whose filter selects the conversion events. */
  readonly conversion: string;
  readonly conversionEntity: string;
  /** Columns that must be equal in both events; at least one pair. */
  readonly same: readonly SameColumns[];
  /** Maximum time between the two events; null: no limit. */
  readonly window: Extract<PeriodSpan, { kind: 'window' }> | null;
  readonly calculation: 'conversions' | 'conversion_rate';
}

export interface SameColumns {
  readonly base: string;
  readonly conversion: string;
}

/** Passage stores of a facet, one for each redaction version. */
export interface FacetStore {
  readonly name: string;
  readonly entity: string;
  /** Column with the entity's key, in the facet and on every passage. */
  readonly entityKey: string;
  /** Key column of the entity itself. */
  readonly keyOfEntity: string;
  /** Fields that metadata filters and joins may use, including the entity key. */
  readonly scalarIndexed: readonly string[];
  readonly maxTopK: number;
  /** `lexical`: BM25 weights as sparse vectors; `dense`: embedding vectors. */
  readonly lane: 'lexical' | 'dense';
  /** True if large permitted sets may be searched by an approximate index. Dense only. */
  readonly approximate: boolean;
  /** Services that may rerank passages; the first is the default. */
  readonly rerankers?: readonly FacetReranker[];
  /** Lexical leg of a hybrid facet: the same facet with separate stores. */
  readonly lexicalLeg?: FacetStore;
  /** Name under which the stores of this leg are kept, if not `name`. */
  readonly indexedAs?: string;
  /** In declared order. */
  readonly versions: readonly FacetVersion[];
  /** Attributes of the entity that are derived from this facet's text. */
  readonly derived: readonly DerivedAttribute[];
  readonly connector: string;
  readonly schema: string;
}

export interface FacetReranker {
  readonly name: string;
  readonly candidates: number;
}

/** A redaction version; `redacts` lists the sensitivity labels whose values its text omits. */
export interface FacetVersion {
  readonly name: string;
  readonly redacts: ReadonlySet<string>;
  /**
   * True if text and fields are searched for values to redact, by label or detector. Fields without a label may then be
   * redacted too.
   */
  readonly searched: boolean;
  /** Table of passages, in the facet's schema. */
  readonly table: string;
  /** Dense: companion table with the sign bits of each vector. */
  readonly bits: string;
  /** Lexical: table of document frequencies (`term`, `passages`); term 0 has the number of passages. */
  readonly words: string;
  readonly derivedTable: string;
}

/** An attribute of an entity that an operator extracted from text at indexing. */
export interface DerivedAttribute {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
}

/** A declared link. `fromColumns[i]` of one end equals `toColumns[i]` of the other, directly or through `bridge`. */
export interface Edge {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  readonly fromColumns: readonly string[];
  readonly toColumns: readonly string[];
  readonly bridge: {
    readonly name: string;
    readonly fromColumns: readonly string[];
    readonly toColumns: readonly string[];
  } | null;
}

const FACETS_BY_ENTITY = new WeakMap<Catalog['facets'], ReadonlyMap<string, readonly FacetStore[]>>();

/** Facets about an entity, in declared order. Cached, since catalogs are immutable. */
export function facetsOf({ facets }: Catalog, entity: string): readonly FacetStore[] {
  let known = FACETS_BY_ENTITY.get(facets);
  if (known === undefined) FACETS_BY_ENTITY.set(facets, (known = groupBy(facets.values(), (f) => f.entity)));
  return known.get(entity) ?? [];
}

/** Sensitivity labels of all columns, computed ones included. */
export function labelsOf({ columns, computed = [] }: Relation): ReadonlySet<string> {
  return new Set([...columns, ...computed].flatMap((c) => c.sensitivity ?? []));
}

export function columnOf(relation: Relation, name: string): Column | null {
  return relation.columns.find((c) => c.name === name) ?? null;
}

/** Display format of a metric. Does not change results. */
export interface MetricFormat {
  /** `percent`: 0.25 is 25 percent. */
  readonly kind: 'number' | 'percent' | 'currency';
  /** ISO 4217 code, for kind `currency`. */
  readonly currency?: string;
  /** Unit of measure such as `kg`, for kind `number`. */
  readonly unit?: string;
  /** Digits after the decimal point. */
  readonly decimals?: number;
}

/** Unit for descriptions: `percent`, `EUR`, `kg`; null if the format declares none. */
export function formatUnit({ kind, currency, unit }: MetricFormat): string | null {
  switch (kind) {
    case 'percent':
      return 'percent';
    case 'currency':
      return currency ?? null;
    case 'number':
      return unit ?? null;
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}

/** Namespaces of full names: `osl.entities.person`, `osl.facets.readme`, `osl.metrics.revenue`. */
export type ObjectNamespace = 'entities' | 'facets' | 'metrics';

export function fullName(room: ObjectNamespace, name: string): string {
  return `osl.${room}.${name}`;
}

/** Strips the namespace if `written` is a full name. Names of objects contain no dots. */
export function unqualifiedName(room: ObjectNamespace, written: string): string {
  const lead = `osl.${room}.`;
  return written.startsWith(lead) ? written.slice(lead.length) : written;
}
