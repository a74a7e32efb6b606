import type { Features, Joins, MetricFormat } from 'osl-compiler';
import { mapInSteps } from '../../base/in-turns.js';
import {
  entityExamples,
  type FormEntry,
  type FunctionEntry,
  facetExample,
  formEntries,
  functionEntries,
  joinExample,
  metricExamples,
  type OperatorEntry,
  operatorEntries,
} from './language.js';
import { entityName, facetName, metricName } from './names.js';
import {
  type ColumnView,
  type EntityView,
  type FacetView,
  type GraphView,
  groupedBy,
  type LinkView,
  type MetricView,
  type VisibleLinkEnd,
} from './view.js';

/** `GET /osl/schema` without `version` and `etag`: everything that a planner needs to write OSL-SQL. */
export interface SchemaDocument {
  readonly entities: readonly SchemaEntity[];
  readonly facets: readonly SchemaFacet[];
  readonly metrics: readonly SchemaMetric[];
  readonly relationships: readonly SchemaRelationship[];
  readonly functions: readonly FunctionEntry[];
  readonly operators: readonly OperatorEntry[];
  readonly forms: readonly FormEntry[];
  readonly features: SchemaFeatures;
}

/** Switches of the manifest: a feature that is off is refused with E0511. */
export interface SchemaFeatures extends Features {
  /** A join that breaks this rule is refused with E0514. */
  readonly joins: Joins;
}

export interface SchemaEntity {
  readonly name: string;
  readonly fqn: string;
  readonly description: string | null;
  /** Reason for deprecation; null if it is not deprecated. */
  readonly deprecated: string | null;
  readonly composition: EntityView['composition'];
  readonly primary_key: readonly string[];
  /** Columns that joins may use. */
  readonly entity_key_columns: readonly string[];
  /** In the order of `*`. */
  readonly columns: readonly SchemaColumn[];
  /** Attributes derived from its text; like `evidence` they can be selected if WHERE names the keys. */
  readonly derived: readonly SchemaDerived[];
  /** Minimum number of entities in a group, for columns whose `use` is `aggregates`; otherwise null. */
  readonly minimum_group_size: number | null;
  /** Facets with text about it. If there are any, `evidence` can be selected by key. */
  readonly facets: readonly string[];
  readonly metrics: readonly string[];
  readonly synonyms: readonly string[];
  readonly examples: readonly string[];
}

interface SchemaDerived {
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
  readonly facet: string;
  readonly synonyms: readonly string[];
}

export interface SchemaColumn {
  readonly name: string;
  readonly type: string;
  readonly description: string | null;
  readonly nullable: boolean;
  /** Rows in which the reader sees a mask instead of the value. */
  readonly masked: 'none' | 'some' | 'all';
  /** `aggregates`: not shown in rows, but usable in aggregates. */
  readonly use: 'rows' | 'aggregates';
  readonly synonyms: readonly string[];
  /** Declared label; in the full view only. */
  readonly sensitivity?: string | null;
}

export interface SchemaFacet {
  readonly name: string;
  readonly fqn: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  readonly entity: string;
  /** Column of a passage with the key of its entity. */
  readonly entity_key: string;
  readonly embedding_model: string;
  /** Time at which its text was last read in turn: RFC 3339, in UTC; null if unknown. */
  readonly indexed_at: string | null;
  readonly retrieval: {
    readonly max_top_k: number;
    readonly modes: readonly string[];
    readonly rerankers: readonly string[];
  };
  /** Default labels of CLASSIFY(text) and TAG(text); empty: the words of the query. */
  readonly labels: readonly string[];
  /** Columns of a passage besides text, score, cite and redacted_fields. */
  readonly columns: readonly SchemaColumn[];
  /** Columns that WHERE and joins may use. */
  readonly scalar_indexed: readonly string[];
  readonly synonyms: readonly string[];
  readonly examples: readonly string[];
}

interface SchemaMetric {
  readonly name: string;
  readonly fqn: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  /** Null if it uses rows of several entities. */
  readonly entity: string | null;
  readonly kind: string;
  readonly type: string;
  /** Display format; null if the manifest states none. */
  readonly format: MetricFormat | null;
  /** True if MEASURE over its entity returns it; a metrics body accepts all metrics. */
  readonly measurable: boolean;
  readonly synonyms: readonly string[];
  readonly examples: readonly string[];
  /** In the full view only. */
  readonly expression?: string;
  readonly filter?: string | null;
}

export interface SchemaRelationship {
  readonly name: string;
  readonly description: string | null;
  readonly deprecated: string | null;
  readonly kind: LinkView['kind'];
  readonly from: VisibleLinkEnd;
  readonly to: VisibleLinkEnd;
  readonly bridge: SchemaBridge | null;
  readonly examples: readonly string[];
}

interface SchemaBridge {
  readonly name: string;
  readonly fqn: string;
  /** Columns with the keys of `from` and `to`. */
  readonly from_columns: readonly string[];
  readonly to_columns: readonly string[];
  readonly entity_key_columns: readonly string[];
  readonly columns: readonly SchemaColumn[];
}

/**
 * Computes the document, in steps.
 *
 * @param full true: with labels and definitions, which only an admin may see
 * @param indexed time at which the texts of each facet were last read
 */
export function* schemaSteps(
  view: GraphView,
  full: boolean,
  hasDecoder: boolean,
  indexed: ReadonlyMap<string, string> = new Map(),
): Generator<void, SchemaDocument> {
  const shapes = schemaShapes(view, full, indexed);
  return {
    entities: yield* mapInSteps(view.entities, shapes.entity),
    facets: yield* mapInSteps(view.facets, shapes.facet),
    metrics: yield* mapInSteps(view.metrics, shapes.metric),
    relationships: yield* mapInSteps(view.links, shapes.relationship),
    functions: functionEntries(),
    operators: operatorEntries(hasDecoder),
    forms: formEntries(view),
    features: featuresOf(view),
  };
}

export function featuresOf({ features, joins }: GraphView): SchemaFeatures {
  return { ...features, joins };
}

/** Functions that describe the objects of `view`. */
export function schemaShapes(view: GraphView, full: boolean, indexed: ReadonlyMap<string, string>) {
  const column = (c: ColumnView): SchemaColumn => schemaColumn(c, full);
  const facets = groupedBy(view.facets, (f) => f.entity);
  const metrics = groupedBy(view.metrics, (m) => m.entity ?? '');
  return {
    entity: (e: EntityView): SchemaEntity =>
      schemaEntity(e, facets.get(e.name) ?? [], metrics.get(e.name) ?? [], column),
    facet: (f: FacetView): SchemaFacet => schemaFacet(f, indexed.get(f.name) ?? null, column),
    metric: schemaMetric,
    relationship: (l: LinkView): SchemaRelationship => schemaRelationship(l, column),
  };
}

type ColumnShape = (column: ColumnView) => SchemaColumn;

function schemaColumn(c: ColumnView, full: boolean): SchemaColumn {
  const { name, type, description, nullable, masked, rows, synonyms, sensitivity } = c;
  const use = rows ? 'rows' : 'aggregates';
  return { name, type, description, nullable, masked, use, synonyms, ...(full ? { sensitivity } : {}) };
}

function schemaEntity(
  entity: EntityView,
  facets: readonly FacetView[],
  metrics: readonly MetricView[],
  column: ColumnShape,
): SchemaEntity {
  const { name, description, deprecated, composition, synonyms } = entity;
  return {
    name,
    fqn: entityName(name),
    description,
    deprecated,
    composition,
    primary_key: entity.primaryKey,
    entity_key_columns: entity.sealedKeys,
    columns: entity.columns.map(column),
    derived: entity.derived,
    minimum_group_size: entity.minimumGroupSize,
    facets: facets.map((f) => f.name),
    metrics: metrics.map((m) => m.name),
    synonyms,
    examples: entityExamples(entity, facets),
  };
}

function schemaFacet(facet: FacetView, indexedAt: string | null, column: ColumnShape): SchemaFacet {
  const { name, description, deprecated, entity, indexed, synonyms } = facet;
  return {
    name,
    fqn: facetName(name),
    description,
    deprecated,
    entity,
    entity_key: facet.entityKey,
    embedding_model: facet.embeddingModel,
    indexed_at: indexedAt,
    retrieval: { max_top_k: facet.maxTopK, modes: facet.modes, rerankers: facet.rerankers },
    labels: facet.labels,
    columns: facet.columns.map(column),
    scalar_indexed: indexed,
    synonyms,
    examples: [facetExample(facet)],
  };
}

function schemaMetric(metric: MetricView): SchemaMetric {
  const { name, description, deprecated, entity, kind, type, format, measurable, synonyms, definition } =
    metric;
  const examples = metricExamples(metric);
  return {
    name,
    fqn: metricName(name),
    description,
    deprecated,
    entity,
    kind,
    type,
    format,
    measurable,
    synonyms,
    examples,
    ...definition,
  };
}

function schemaRelationship(link: LinkView, column: ColumnShape): SchemaRelationship {
  const { name, description, deprecated, kind, from, to, bridge } = link;
  return {
    name,
    description,
    deprecated,
    kind,
    from,
    to,
    bridge:
      bridge === null
        ? null
        : {
            name: bridge.name,
            fqn: entityName(bridge.name),
            from_columns: bridge.fromColumns,
            to_columns: bridge.toColumns,
            entity_key_columns: bridge.sealedKeys,
            columns: bridge.columns.map(column),
          },
    examples: link.followed ? [joinExample(link)] : [],
  };
}
