import type { Features, Joins } from 'osl-compiler';
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
} from './view.js';

/** Response of `GET /osl/schema` without `version` and `etag`: everything that a planner needs to write OSL-SQL. */
export interface SchemaDocument {
  readonly entities: readonly ReturnType<SchemaShapes['entity']>[];
  readonly facets: readonly ReturnType<SchemaShapes['facet']>[];
  readonly metrics: readonly ReturnType<SchemaShapes['metric']>[];
  readonly relationships: readonly ReturnType<SchemaShapes['relationship']>[];
  readonly functions: readonly FunctionEntry[];
  readonly operators: readonly OperatorEntry[];
  readonly forms: readonly FormEntry[];
  readonly features: SchemaFeatures;
}

/** The manifest's feature switches: using a feature that is off is refused with E0511. */
export interface SchemaFeatures extends Features {
  /** The manifest's rule for joins; a join that breaks it is refused with E0514. */
  readonly joins: Joins;
}

/**
 * Computes the schema document, in steps.
 *
 * @param full includes labels and definitions, which only an admin may see
 * @param indexed time at which each facet's texts were last read
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

type SchemaShapes = ReturnType<typeof schemaShapes>;

/** Functions that describe the objects of `view`. */
export function schemaShapes(view: GraphView, full: boolean, indexed: ReadonlyMap<string, string>) {
  const column = (c: ColumnView) => schemaColumn(c, full);
  const facets = groupedBy(view.facets, (f) => f.entity);
  const metrics = groupedBy(view.metrics, (m) => m.entity ?? '');
  return {
    entity: (e: EntityView) => schemaEntity(e, facets.get(e.name) ?? [], metrics.get(e.name) ?? [], column),
    facet: (f: FacetView) => schemaFacet(f, indexed.get(f.name) ?? null, column),
    metric: schemaMetric,
    relationship: (l: LinkView) => schemaRelationship(l, column),
  };
}

type ColumnShape = (column: ColumnView) => ReturnType<typeof schemaColumn>;

function schemaColumn(c: ColumnView, full: boolean) {
  const { name, type, description, nullable, masked, rows, synonyms, sensitivity } = c;
  // `aggregates`: not shown in rows, but can be used in aggregates.
  const use: 'rows' | 'aggregates' = rows ? 'rows' : 'aggregates';
  return { name, type, description, nullable, masked, use, synonyms, ...(full ? { sensitivity } : {}) };
}

function schemaEntity(
  entity: EntityView,
  facets: readonly FacetView[],
  metrics: readonly MetricView[],
  column: ColumnShape,
) {
  const { name, description, deprecated, composition, synonyms } = entity;
  return {
    name,
    fqn: entityName(name),
    description,
    deprecated,
    composition,
    primary_key: entity.primaryKey,
    /** Columns that joins may use. */
    entity_key_columns: entity.sealedKeys,
    /** Column used as `metric_time` of the entity's metrics; null if there is none that the caller sees. */
    time_dimension: entity.timeDimension,
    columns: entity.columns.map(column),
    derived: entity.derived,
    /** Minimum group size for columns whose `use` is `aggregates`; null if there are none. */
    minimum_group_size: entity.minimumGroupSize,
    /** Facets with text about the entity. If there are any, `evidence` can be selected by key. */
    facets: facets.map((f) => f.name),
    metrics: metrics.map((m) => m.name),
    synonyms,
    examples: entityExamples(entity, facets),
  };
}

function schemaFacet(facet: FacetView, indexedAt: string | null, column: ColumnShape) {
  const { name, description, deprecated, entity, indexed, synonyms } = facet;
  return {
    name,
    fqn: facetName(name),
    description,
    deprecated,
    entity,
    entity_key: facet.entityKey,
    embedding_model: facet.embeddingModel,
    /** RFC 3339, in UTC; null if unknown. */
    indexed_at: indexedAt,
    retrieval: { max_top_k: facet.maxTopK, modes: facet.modes, rerankers: facet.rerankers },
    labels: facet.labels,
    columns: facet.columns.map(column),
    /** Columns that WHERE and joins may use. */
    scalar_indexed: indexed,
    synonyms,
    examples: [facetExample(facet)],
  };
}

function schemaMetric(metric: MetricView) {
  const { name, description, deprecated, entity, kind, type, format, measurable, synonyms, definition } =
    metric;
  const measured = { entity, kind, type, format, measurable, synonyms, examples: metricExamples(metric) };
  return { name, fqn: metricName(name), description, deprecated, ...measured, ...definition };
}

function schemaRelationship(link: LinkView, column: ColumnShape) {
  const { name, description, deprecated, kind, from, to, bridge } = link;
  const junction = bridge && {
    name: bridge.name,
    fqn: entityName(bridge.name),
    from_columns: bridge.fromColumns,
    to_columns: bridge.toColumns,
    entity_key_columns: bridge.sealedKeys,
    columns: bridge.columns.map(column),
  };
  const examples = link.followed ? [joinExample(link)] : [];
  return { name, description, deprecated, kind, from, to, bridge: junction, examples };
}
