import { groupBy } from '../functions/define.js';
import type { ColumnForm } from '../types/column-form.js';
import type { TypeName } from '../types/types.js';
import type { Features } from './features.js';
import type { Grain, PeriodSpan } from './grain.js';

/** The published semantic graph, as the compiler needs it. Frozen; made once per manifest version. */
export interface Catalog {
  /** Content hash of the manifest; part of every cache key. */
  readonly version: string;
  /** Entities and bridges by name; names are unique over both. */
  readonly relations: ReadonlyMap<string, Relation>;
  readonly metrics: ReadonlyMap<string, Metric>;
  /** By name; each is also in `relations`, with its metadata as columns, so that grants can name it. */
  readonly facets: ReadonlyMap<string, FacetStore>;
  /** Links between entities, in declared order: what TRAVERSE walks. */
  readonly edges: readonly Edge[];
  /** Upper limit of `per_hop` in TRAVERSE. Default: 100,000. */
  readonly maxPerHop?: number;
  /** Rows that operators of one SELECT may work on. */
  readonly maxOperatedRows?: number;
  /**
   * Tables that raw SQL may name: by `schema.table`, the entity or bridge that governs each. Absent if the tenant does
   * not allow raw SQL.
   */
  readonly rawTables?: ReadonlyMap<string, Relation>;
  /** The join rule; absent: `declared`. */
  readonly joins?: Joins;
  /** Features that the tenant allows. Default: all. */
  readonly features?: Features;
  /** Tables of what was aggregated before, in declared order; absent: none. */
  readonly rollups?: readonly Rollup[];
}

/**
 * A table with a row for each combination of values of some columns of an entity: how many rows of the entity have it,
 * and what these add up to. It holds all rows of the entity, whoever may see them.
 */
export interface Rollup {
  readonly name: string;
  readonly entity: string;
  readonly schema: string;
  /** Its name has a fingerprint of what it is built from in it: of another definition it is another table. */
  readonly table: string;
  /** Columns of the entity that identify its rows. */
  readonly dimensions: readonly string[];
  /** A moment of the entity, of which the beginning of its period of UTC is kept in column `#t`, as a timestamp. */
  readonly time: { readonly column: string; readonly grain: Grain } | null;
  readonly measures: readonly RollupMeasure[];
}

/** Aggregates kept for one column of the entity. */
export interface RollupMeasure {
  readonly column: string;
  /** Number of values that are not NULL. */
  readonly count: RolledColumn;
  readonly sum: RolledColumn | null;
  readonly min: RolledColumn | null;
  readonly max: RolledColumn | null;
}

export interface RolledColumn {
  readonly name: string;
  readonly type: TypeName;
}

/** `declared`: relations are joined on sealed keys. `any`: on any predicate, as in raw SQL. */
export type Joins = 'declared' | 'any';

/**
 * A relation that can be scanned. A `bridge` (an N-N junction table) is no entity: it can be named in joins
 * only, never alone in FROM. A `facet` is text about an entity: RETRIEVE alone reads it.
 */
export interface Relation {
  readonly kind: 'entity' | 'bridge' | 'facet';
  readonly name: string;
  readonly description: string | null;
  /** The connector that holds it; a query may touch one connector only. */
  readonly connector: string;
  readonly schema: string;
  readonly table: string;
  /** In declared order; this is the order of `*`. */
  readonly columns: readonly Column[];
  readonly primaryKey: readonly string[];
  /** Columns that joins may use: the contract's `entity_key_columns`. */
  readonly sealedKeys: readonly string[];
  /** Values computed from its columns, and from those of rows that they refer to. Absent: none. */
  readonly computed?: readonly ComputedColumn[];
  /** The column that says when a row happened: the `metric_time` of its metrics. Absent where none is declared. */
  readonly timeDimension?: string;
  /** The rollup whose table is read instead of the entity's own; absent: none. */
  readonly rollup?: string;
}

export interface Column {
  readonly name: string;
  /** The column's name in the upstream table. */
  readonly physical: string;
  readonly type: TypeName;
  /** The type that the database has for it, where that is none of the model's (`stored.ts`); `type` is that of its text. */
  readonly stored?: string;
  /** Labels of an enum in their order, if the manifest declares them. */
  readonly labels?: readonly string[];
  /** Details of the declared type beyond `type`, as in `varchar(20)`; absent if there are none. */
  readonly form?: ColumnForm;
  readonly description: string | null;
  readonly nullable: boolean;
  /** Sensitivity label declared at the connector (`pii`, `secret`, …); null where there is none. */
  readonly sensitivity: string | null;
  /** Columns of one domain hash to equal values for equal inputs, so they can be joined under a `hash` mask. */
  readonly keyDomain: string | null;
}

/**
 * A value of each row that stands nowhere: an expression over columns, which a question that names it is written out to
 * before anything is governed. Whoever may not see all that it reads does not know of it.
 */
export interface ComputedColumn {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
  /** In OSL-SQL's expression language: `price - cost`, `customer.country`. */
  readonly expression: string;
  /** Every declared column that it reads, the keys on the way to a parent with them. */
  readonly reads: readonly ReadColumn[];
  /** The columns that lead to a parent. */
  readonly keys: readonly ReadColumn[];
  /** A label of its own, beside those of what it reads; null where it has none. */
  readonly sensitivity: string | null;
  /** Its own label and those of computed columns that it is written out of: who is not shown each in the clear is denied. */
  readonly labels: readonly OwnLabel[];
}

/** A sensitivity label that grants on `relation` must show in the clear. */
export interface OwnLabel {
  readonly relation: string;
  readonly label: string;
}

export interface ReadColumn {
  readonly relation: string;
  readonly column: string;
}

/** A named figure. Expressions and filters are written in OSL-SQL's expression language. */
export type Metric = SimpleMetric | RatioMetric | DerivedMetric | CumulativeMetric | ConversionMetric;

/** An aggregate over the rows of one entity. */
export interface SimpleMetric {
  readonly type: 'simple';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  readonly entity: string;
  /** An aggregate expression over the entity's columns, e.g. `sum(install_bytes)`. */
  readonly expression: string;
  /** A predicate over the entity's columns, or null. */
  readonly filter: string | null;
}

/** One metric over another, each aggregated by itself. */
export interface RatioMetric {
  readonly type: 'ratio';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** The one entity that it aggregates, or null where there are several. */
  readonly entity: string | null;
  readonly numerator: MetricInput;
  readonly denominator: MetricInput;
}

/** A metric as a ratio takes it: `filter` is one more predicate over the entity's columns, or null. */
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
  /** The one entity that it aggregates, or null where there are several. */
  readonly entity: string | null;
  readonly expression: string;
}

/** A metric over all rows up to the end of a period, or those of a span that ends with it. */
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

/** Number of events of one kind that were followed by an event of another kind, of the same entity. */
export interface ConversionMetric {
  readonly type: 'conversion';
  readonly name: string;
  readonly description: string | null;
  readonly format?: MetricFormat;
  /** The entity of the events that it starts from. */
  readonly entity: string;
  /** A simple metric over them: each row that its filter takes is an event. */
  readonly base: string;
  /** A simple metric over the events that follow. */
  readonly conversion: string;
  readonly conversionEntity: string;
  /** The columns in which an event and the one that follows it are equal; at least one pair. */
  readonly same: readonly SameColumns[];
  /** Longest time between an event and the one that follows it; null: no limit. */
  readonly window: Extract<PeriodSpan, { kind: 'window' }> | null;
  readonly calculation: 'conversions' | 'conversion_rate';
}

/** A column of the base events, and that of the events that follow which is equal to it. */
export interface SameColumns {
  readonly base: string;
  readonly conversion: string;
}

/** The stores of a facet's passages, one for each redaction version. */
export interface FacetStore {
  readonly name: string;
  readonly entity: string;
  /** The column that carries the key of the entity, in the facet and on every passage. */
  readonly entityKey: string;
  /** The entity's own key column. */
  readonly keyOfEntity: string;
  /** Fields that metadata filters and joins may use; the entity key is one. */
  readonly scalarIndexed: readonly string[];
  readonly maxTopK: number;
  /** `lexical`: BM25 weights as sparse vectors; `dense`: the vectors of an embedding model. */
  readonly lane: 'lexical' | 'dense';
  /** True if large permitted sets may be searched by an approximate index; dense leg only. */
  readonly approximate: boolean;
  /** Services that may rerank its passages; the first is the default. */
  readonly rerankers?: readonly FacetReranker[];
  /** The lexical leg of a dense facet that is searched by both: the same facet, in stores of its own. */
  readonly lexicalLeg?: FacetStore;
  /** Name under which the stores of this leg are kept, if it differs from `name`. */
  readonly indexedAs?: string;
  /** In declared order. */
  readonly versions: readonly FacetVersion[];
  /** Attributes of the entity that this facet's text gives. */
  readonly derived: readonly DerivedAttribute[];
  readonly connector: string;
  readonly schema: string;
}

/** A model elsewhere that orders passages anew. */
export interface FacetReranker {
  readonly name: string;
  /** Maximum number of the best passages that are sent to it. */
  readonly candidates: number;
}

/** One redaction version: the sensitivity labels whose values its text does not hold. */
export interface FacetVersion {
  readonly name: string;
  readonly redacts: ReadonlySet<string>;
  /**
   * True if its text and fields are searched for values to redact, by labels or by detectors: then a field without a
   * label may be redacted too.
   */
  readonly searched: boolean;
  /** The table that holds it, in the facet's schema. */
  readonly table: string;
  /** Dense lane: the narrow table beside it, with the signs of each vector. */
  readonly bits: string;
  /** Lexical lane: the table of how many of its passages hold each word (`term`, `passages`); of word 0, how many there are. */
  readonly words: string;
  /** The table of what is derived from it, beside it. */
  readonly derivedTable: string;
}

/** An attribute of an entity that an operator took from its text when that was indexed. */
export interface DerivedAttribute {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
}

/** A declared link. `fromColumns[i]` of one end equals `toColumns[i]` of the other, through `bridge` or straight. */
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

/** The facets about an entity, in declared order. A catalog never changes, so they are sorted by entity once. */
export function facetsOf({ facets }: Catalog, entity: string): readonly FacetStore[] {
  let known = FACETS_BY_ENTITY.get(facets);
  if (known === undefined) FACETS_BY_ENTITY.set(facets, (known = groupBy(facets.values(), (f) => f.entity)));
  return known.get(entity) ?? [];
}

/** The sensitivity labels of its columns, computed ones with them. */
export function labelsOf({ columns, computed = [] }: Relation): ReadonlySet<string> {
  return new Set([...columns, ...computed].flatMap((c) => c.sensitivity ?? []));
}

export function columnOf(relation: Relation, name: string): Column | null {
  return relation.columns.find((c) => c.name === name) ?? null;
}

/** Display format of a metric's figures. Does not change any result. Fields that the manifest leaves out are absent. */
export interface MetricFormat {
  /** `percent`: 0.25 is 25 percent. */
  readonly kind: 'number' | 'percent' | 'currency';
  /** ISO 4217 code, for kind `currency`. */
  readonly currency?: string;
  /** Unit of measure such as `kg`, for kind `number`. */
  readonly unit?: string;
  /** Digits behind the point. */
  readonly decimals?: number;
}

/** The unit of figures in `format`, for descriptions: `percent`, `EUR`, `kg`; null if the format declares none. */
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

/** The rooms that full names of objects begin with: `osl.entities.person`, `osl.facets.readme`, `osl.metrics.revenue`. */
export type ObjectNamespace = 'entities' | 'facets' | 'metrics';

/** `osl.metrics.revenue` of `revenue`. */
export function fullName(room: ObjectNamespace, name: string): string {
  return `osl.${room}.${name}`;
}

/** The name alone, where it was written in full; no name of an object has a dot in it. */
export function plainName(room: ObjectNamespace, written: string): string {
  const lead = `osl.${room}.`;
  return written.startsWith(lead) ? written.slice(lead.length) : written;
}
