import { groupBy } from '../functions/define.js';
import type { ColumnForm } from '../types/column-form.js';
import type { TypeName } from '../types/types.js';
import type { Features } from './features.js';
import type { Grain, PeriodSpan } from './grain.js';

/** The published semantic model. It is frozen, and created once per manifest version. */
export interface Catalog {
  /** Content hash of the manifest. It is part of every cache key. */
  readonly version: string;
  /** Keyed by name. Names are unique across all kinds of relations. */
  readonly relations: ReadonlyMap<string, Relation>;
  readonly metrics: ReadonlyMap<string, Metric>;
  /** Keyed by name. Each facet is also in `relations`, with its metadata as columns, so that grants can refer to it. */
  readonly facets: ReadonlyMap<string, FacetStore>;
  /** Links between entities that TRAVERSE can follow, in declared order. */
  readonly edges: readonly Edge[];
  /** Maximum `per_hop` of TRAVERSE. Default: 100,000. */
  readonly maxPerHop?: number;
  /** Maximum number of rows that the operators of one SELECT may process. */
  readonly maxOperatedRows?: number;
  /**
   * Tables that raw SQL may use: maps `schema.table` to the entity or bridge that governs it. Absent if raw SQL is not
   * allowed.
   */
  readonly rawTables?: ReadonlyMap<string, Relation>;
  /** The join rule. Default: `declared`. */
  readonly joins?: Joins;
  /** The features that the tenant allows. Default: all. */
  readonly features?: Features;
  /** In declared order. */
  readonly rollups?: readonly Rollup[];
}

/**
 * A table with pre-aggregated rows of an entity: counts and aggregates for each combination of dimension values. It
 * covers all rows of the entity, regardless of access.
 */
export interface Rollup {
  readonly name: string;
  readonly entity: string;
  readonly schema: string;
  /** The table's name. It contains a fingerprint of the definition, so that a changed definition uses another table. */
  readonly table: string;
  readonly dimensions: readonly string[];
  /** The entity's time column, truncated to `grain` in UTC and stored as a timestamp in column `#t`. */
  readonly time: { readonly column: string; readonly grain: Grain } | null;
  readonly measures: readonly RollupMeasure[];
}

export interface RollupMeasure {
  readonly column: string;
  /** Column with the number of non-NULL values. */
  readonly count: RolledColumn;
  readonly sum: RolledColumn | null;
  readonly min: RolledColumn | null;
  readonly max: RolledColumn | null;
}

export interface RolledColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** `declared` allows joins only on keys that the manifest declares (sealed keys); `any` allows any predicate. */
export type Joins = 'declared' | 'any';

/**
 * A relation that can be scanned. A `bridge` (junction table) can be joined but not used alone in FROM. A `facet` is
 * text about an entity and can only be read by RETRIEVE.
 */
export interface Relation {
  readonly kind: 'entity' | 'bridge' | 'facet';
  readonly name: string;
  readonly description: string | null;
  /** The connector's name. A query may use only one connector. */
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  /** In declared order, which is also the order of `*`. */
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Columns that joins may use; `entity_key_columns` in the contract. */
  readonly sealedKeys: readonly string[];
  /** Columns that are computed from the relation's own columns and those of parents. Default: none. */
  readonly computed?: readonly ComputedColumn[];
  /** The time column that serves as `metric_time` for the entity's metrics. */
  readonly timeDimension?: string;
  /** The rollup, if its table is read instead of the entity's own table. */
  readonly rollup?: Rollup;
}

export interface Column {
  readonly name: string;
  /** The column's name in the upstream table. */
  readonly physical: string;
  readonly type: TypeName;
  /**
   * The type in the database, if OSL-SQL does not support it; `type` is then the type of its text form. See
   * `types/column-form.ts`.
   */
  readonly stored?: string;
  /** The labels of an enum in order, if the manifest declares them. */
  readonly labels?: readonly string[];
  /** Modifiers of the declared type, such as the length in `varchar(20)`. */
  readonly form?: ColumnForm;
  readonly description: string | null;
  readonly nullable: boolean;
  /** The sensitivity label declared at the connector (`pii`, `secret`, …). */
  readonly sensitivity: string | null;
  /** Columns in the same domain hash equal inputs to equal values, so they can be joined under a `hash` mask. */
  readonly keyDomain: string | null;
}

/**
 * A virtual column: an expression that replaces the column's name in queries before policy applies. It is hidden from
 * callers who may not see all columns that it reads.
 */
export interface ComputedColumn {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
  /** An OSL-SQL expression such as `price - cost` or `customer.country`. */
  readonly expression: string;
  /** All declared columns that it reads, including keys used to reach parents. */
  readonly reads: readonly ReadColumn[];
  /** The key columns that are used to reach parents. */
  readonly keys: readonly ReadColumn[];
  /** The label declared for the column itself, in addition to those of the columns it reads. */
  readonly sensitivity: string | null;
  /** Labels declared for this column and for computed columns that it uses. Grants must unmask them all. */
  readonly labels: readonly OwnLabel[];
}

/** A sensitivity label that the caller's grants on `relation` must unmask. */
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

/** The quotient of two metrics, which are aggregated separately. */
export interface RatioMetric {
  readonly type: 'ratio';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** Null if the inputs come from several entities. */
  readonly entity: string | null;
  readonly numerator: MetricInput;
  readonly denominator: MetricInput;
}

/** A metric and its filter: an additional predicate over the columns of the metric's entity, or null. */
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
  /** Null if the inputs come from several entities. */
  readonly entity: string | null;
  readonly expression: string;
}

/** A metric over a different span of rows for each period: all rows up to its end, a window, or an earlier period. */
export interface CumulativeMetric {
  readonly type: 'cumulative';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  readonly entity: string;
  /** The base metric, which must be of a single entity and not cumulative. */
  readonly metric: string;
  readonly span: PeriodSpan;
}

/** Counts the conversion events that followed a base event with equal values in `same`, or computes their rate. */
export interface ConversionMetric {
  readonly type: 'conversion';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** The entity of the base events. */
  readonly entity: string;
  /** The simple metric whose filter selects the base events. */
  readonly base: string;
  /** The simple metric whose filter selects the conversion events. */
  readonly conversion: string;
  readonly conversionEntity: string;
  /** Columns that must be equal in both events. There is at least one pair. */
  readonly same: readonly SameColumns[];
  /** Maximum time between the two events; null if there is no limit. */
  readonly window: Extract<PeriodSpan, { kind: 'window' }> | null;
  readonly calculation: 'conversions' | 'conversion_rate';
}

export interface SameColumns {
  readonly base: string;
  readonly conversion: string;
}

/** The passage stores of a facet, one for each redaction version. */
export interface FacetStore {
  readonly name: string;
  readonly entity: string;
  /** Column with the entity's key, in the facet and in every passage. */
  readonly entityKey: string;
  /** The key column of the entity itself. */
  readonly keyOfEntity: string;
  /** Fields that metadata filters and joins may use. The entity key is one of them. */
  readonly scalarIndexed: readonly string[];
  readonly maxTopK: number;
  /** Search method: `lexical` uses BM25 weights as sparse vectors, `dense` uses embedding vectors. */
  readonly lane: 'lexical' | 'dense';
  /** True if an approximate index may be used to search large permitted sets. Dense only. */
  readonly approximate: boolean;
  /** Services that may rerank passages. The first is the default. */
  readonly rerankers?: readonly FacetReranker[];
  /** The word search of a hybrid facet (its lexical leg): the same facet with separate stores. */
  readonly lexicalLeg?: FacetStore;
  /** The name under which this leg's stores are kept, if it differs from `name`. */
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

/** A redaction version of a facet's passages. `redacts` lists the sensitivity labels whose values it replaces. */
export interface FacetVersion {
  readonly name: string;
  readonly redacts: ReadonlySet<string>;
  /**
   * True if text and fields are searched for values to redact, by label or detector. In that case even fields without
   * a label may be redacted.
   */
  readonly searched: boolean;
  /** The table of passages, in the facet's schema. */
  readonly table: string;
  /** For dense facets, the companion table with the sign bits of each vector. */
  readonly bits: string;
  /** For lexical facets: table of document frequencies (`term`, `passages`). Term 0 counts all passages. */
  readonly words: string;
  readonly derivedTable: string;
}

/** An attribute of an entity that an operator extracted from text during indexing. */
export interface DerivedAttribute {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
}

/** A declared link. `fromColumns[i]` on one side equals `toColumns[i]` on the other, directly or through `bridge`. */
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

/** Returns the facets about an entity, in declared order. Cached because catalogs are immutable. */
export function facetsOf({ facets }: Catalog, entity: string): readonly FacetStore[] {
  let known = FACETS_BY_ENTITY.get(facets);
  if (known === undefined) FACETS_BY_ENTITY.set(facets, (known = groupBy(facets.values(), (f) => f.entity)));
  return known.get(entity) ?? [];
}

/** Returns the sensitivity labels of all columns, including computed ones. */
export function labelsOf({ columns, computed = [] }: Relation): ReadonlySet<string> {
  return new Set([...columns, ...computed].flatMap((c) => c.sensitivity ?? []));
}

export function columnOf(relation: Relation, name: string): Column | null {
  return relation.columns.find((c) => c.name === name) ?? null;
}

/** The display format of a metric. It does not change results. */
export interface MetricFormat {
  /** With `percent`, 0.25 is shown as 25 percent. */
  readonly kind: 'number' | 'percent' | 'currency';
  /** ISO 4217 code, for kind `currency`. */
  readonly currency?: string;
  /** Unit of measure such as `kg`, for kind `number`. */
  readonly unit?: string;
  /** Digits after the decimal point. */
  readonly decimals?: number;
}

/** Returns the unit for descriptions: `percent`, `EUR`, `kg`; null if the format declares none. */
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

/** The namespace in a full name such as `osl.entities.person`, `osl.facets.readme` or `osl.metrics.revenue`. */
export type ObjectNamespace = 'entities' | 'facets' | 'metrics';

export function fullName(room: ObjectNamespace, name: string): string {
  return `osl.${room}.${name}`;
}

/** Strips the namespace if `written` is a full name. Object names contain no dots. */
export function unqualifiedName(room: ObjectNamespace, written: string): string {
  const lead = `osl.${room}.`;
  return written.startsWith(lead) ? written.slice(lead.length) : written;
}
