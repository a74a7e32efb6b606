import {
  type Access,
  type Catalog,
  compile,
  type Features,
  fullName,
  identifier,
  type Joins,
  type Metric,
  type MetricFormat,
  QueryError,
  type ReadColumn,
  type Relation,
  type RelationAccess,
  type TypeName,
  unqualifiedName,
  type VisibleColumn,
  visibleColumns,
} from 'osl-compiler';
import type { Composition, Manifest } from '../manifest/index.js';

/**
 * The part of the semantic graph that a reader may see. It reveals no name, count or order of the rest. All interfaces
 * describe the graph from this view alone.
 */
export interface GraphView {
  /** Visible entities in declared order, like all lists in a view. */
  readonly entities: readonly EntityView[];
  readonly facets: readonly FacetView[];
  readonly metrics: readonly MetricView[];
  readonly links: readonly LinkView[];
  /** Enabled and disabled features of OSL-SQL, the same for every reader. */
  readonly features: Features;
  readonly joins: Joins;
}

export interface EntityView {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  readonly composition: Composition;
  readonly columns: readonly ColumnView[];
  /** The key columns; empty if the reader does not see all of them. */
  readonly primaryKey: readonly string[];
  readonly sealedKeys: readonly string[];
  /** The column used as `metric_time`; null if there is none, or if the reader does not see it. */
  readonly timeDimension: string | null;
  /** Visible attributes derived from text. Like `evidence`, they need a query that picks its rows by key. */
  readonly derived: readonly DerivedView[];
  /** Minimum number of entities per group, if any grant allows aggregates only; null if all grants show rows. */
  readonly minimumGroupSize: number | null;
  /** True if all aggregates are allowed; otherwise only metrics are. */
  readonly aggregates: boolean;
  /** Facets that the entity declares as `legs` and that the reader may see. */
  readonly legs: readonly string[];
  readonly synonyms: readonly string[];
}

export interface DerivedView {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
  readonly facet: string;
  readonly synonyms: readonly string[];
}

export interface ColumnView {
  readonly name: string;
  readonly type: TypeName;
  readonly description: string | null;
  readonly nullable: boolean;
  readonly masked: VisibleColumn['masked'];
  /** True if the column is shown in rows; otherwise it can be used in aggregates only. */
  readonly rows: boolean;
  readonly synonyms: readonly string[];
  readonly sensitivity: string | null;
}

export interface FacetView {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  readonly entity: string;
  /** The facet's column that holds the key of the entity. */
  readonly entityKey: string;
  readonly keyOfEntity: string;
  readonly embeddingModel: string;
  readonly maxTopK: number;
  /** Allowed values of RETRIEVE's `mode`; the first is the default. */
  readonly modes: readonly string[];
  /** Allowed values of RETRIEVE's `rerank`; the first is used for `true`. */
  readonly rerankers: readonly string[];
  /** Names of the default labels of CLASSIFY and TAG. */
  readonly labels: readonly string[];
  readonly columns: readonly ColumnView[];
  readonly indexed: readonly string[];
  readonly synonyms: readonly string[];
}

export interface MetricView {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** The entity that the metric is measured over; null if it uses rows of several entities. */
  readonly entity: string | null;
  readonly kind: string;
  readonly type: TypeName;
  /** Display format; null if the manifest does not state one. */
  readonly format: MetricFormat | null;
  /** True if MEASURE can return the metric over its entity; a request body of kind `metrics` accepts all metrics. */
  readonly measurable: boolean;
  readonly synonyms: readonly string[];
  readonly definition: Readonly<Record<string, unknown>> | null;
}

/** A declared link between two entities, on columns that the reader can join on. */
export interface LinkView {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  readonly kind: 'many_to_one' | 'one_to_one' | 'many_to_many';
  readonly from: VisibleLinkEnd;
  readonly to: VisibleLinkEnd;
  readonly bridge: BridgeView | null;
  /** True if the whole link is in one database, so that queries can follow it. */
  readonly followed: boolean;
}

export interface VisibleLinkEnd {
  readonly entity: string;
  readonly columns: readonly string[];
}

/** Junction table of a many-to-many link. Its `fromColumns[i]` holds the link's `from.columns[i]`. */
export interface BridgeView {
  readonly name: string;
  readonly fromColumns: readonly string[];
  readonly toColumns: readonly string[];
  readonly columns: readonly ColumnView[];
  readonly sealedKeys: readonly string[];
}

export function groupedBy<T, K>(all: readonly T[], key: (one: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const one of all) {
    const known = groups.get(key(one));
    if (known === undefined) groups.set(key(one), [one]);
    else known.push(one);
  }
  return groups;
}

export interface VisibleRelation {
  readonly relation: Relation;
  readonly rights: RelationAccess;
  readonly views: readonly ColumnView[];
  readonly joinable: ReadonlySet<string>;
}

/** Returns the type of `MEASURE(metric)` over the metric's entity; null without an entity or if access is refused. */
export function measuredType(metric: Metric, manifest: Manifest, access: Access): TypeName | null {
  if (metric.entity === null) return null;
  const text = `SELECT MEASURE(${identifier(metric.name)}) FROM osl.entities.${identifier(metric.entity)}`;
  try {
    return compile(text, manifest.catalog, access).outputs[0]?.type ?? null;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

/** Visibilities of a column, widest first: clear, masked in some rows, masked in all, in aggregates only, or hidden. */
export const VISIBILITIES = ['clear', 'partly_masked', 'masked', 'aggregates', 'nothing'] as const;
export type Visibility = (typeof VISIBILITIES)[number];

export function visibilities(
  relation: Relation,
  catalog: Catalog,
  access: Access,
): readonly { readonly name: string; readonly sees: Visibility }[] {
  return visibleColumns(relation, catalog, access).map((column) => ({
    name: column.column.name,
    sees: visibilityOf(column),
  }));
}

function visibilityOf({ rows, masked }: VisibleColumn): Visibility {
  if (!rows) return 'aggregates';
  return masked === 'none' ? 'clear' : masked === 'some' ? 'partly_masked' : 'masked';
}

/** Returns the visibility of a column; if `column` is null, the widest visibility among the columns of the relation. */
export function widestVisibility(
  relation: Relation,
  column: string | null,
  catalog: Catalog,
  access: Access,
): Visibility {
  const seen = visibilities(relation, catalog, access).filter(
    ({ name }) => column === null || name === column,
  );
  return VISIBILITIES.find((sight) => seen.some(({ sees }) => sees === sight)) ?? 'nothing';
}

/** True if `a` shows more than `b`. */
export function isMore(a: Visibility, b: Visibility): boolean {
  return VISIBILITIES.indexOf(a) < VISIBILITIES.indexOf(b);
}

/** Returns the full name of an entity or bridge, as used in queries and in the audit log. */
export function entityName(name: string): string {
  return fullName('entities', name);
}

export function columnName(entity: string, column: string): string {
  return `${fullName('entities', entity)}.${column}`;
}

export function facetName(name: string): string {
  return fullName('facets', name);
}

export function metricName(name: string): string {
  return fullName('metrics', name);
}

/** Returns the full names of all objects in a view, sorted and without duplicates, for the audit record. */
export function objectsIn(
  view: Pick<GraphView, 'entities' | 'facets' | 'metrics' | 'links'>,
): readonly string[] {
  const bridges = view.links.flatMap((l) => (l.bridge === null ? [] : [entityName(l.bridge.name)]));
  const names = [
    ...view.entities.map((e) => entityName(e.name)),
    ...bridges,
    ...view.facets.map((f) => facetName(f.name)),
    ...view.metrics.map((m) => metricName(m.name)),
  ];
  return [...new Set(names)].sort();
}

/** Returns the full name of a relation in the catalog, or of one of its columns. */
export function objectName({ kind, name }: Relation, column: string | null = null): string {
  const owner = fullName(kind === 'facet' ? 'facets' : 'entities', name);
  return column === null ? owner : `${owner}.${column}`;
}

/** Returns the columns whose grants show a column: the column itself or, for a computed one, those that it reads. */
export function readsOf({ name, computed }: Relation, column: string): readonly ReadColumn[] {
  return computed?.find((one) => one.name === column)?.reads ?? [{ relation: name, column }];
}

export interface CatalogName {
  readonly relation: string;
  readonly column: string | null;
}

/**
 * Splits a name such as `osl.entities.customer.email`, `osl.facets.review.stars` or `customer.email` into relation and
 * column. Names in the model contain no dots.
 */
export function objectNamed(name: string): CatalogName {
  const [relation = '', ...column] = unqualifiedName('facets', unqualifiedName('entities', name)).split('.');
  return { relation, column: column.length === 0 ? null : column.join('.') };
}

/** Returns the name without its prefix, as in the lexicon: `customer.name` for `osl.entities.customer.name`. */
export function shortName(fqn: string): string {
  return fqn.replace(/^osl\.(?:entities|facets|metrics)\./, '');
}
