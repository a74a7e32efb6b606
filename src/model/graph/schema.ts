import { type Features, type Joins, nearest } from 'osl-compiler';
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
import {
  type ColumnView,
  type EntityView,
  entityName,
  type FacetView,
  facetName,
  type GraphView,
  groupedBy,
  type LinkView,
  type MetricView,
  metricName,
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
interface SchemaFeatures extends Features {
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

function featuresOf({ features, joins }: GraphView): SchemaFeatures {
  return { ...features, joins };
}

type SchemaShapes = ReturnType<typeof schemaShapes>;

/** Returns functions that describe the objects of `view`. */
function schemaShapes(view: GraphView, full: boolean, indexed: ReadonlyMap<string, string>) {
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
    /** Column used as `metric_time` of the entity's metrics; null if the caller sees no such column. */
    time_dimension: entity.timeDimension,
    columns: entity.columns.map(column),
    derived: entity.derived,
    /** Minimum group size for columns whose `use` is `aggregates`; null if no group size is required. */
    minimum_group_size: entity.minimumGroupSize,
    /** Facets with text about the entity. If there are any, a query that picks rows by key can select `evidence`. */
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
    /** Time at which the facet's texts were last read: RFC 3339, in UTC; null if unknown. */
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

const OBJECTS = ['entities', 'facets', 'metrics', 'relationships'] as const;
/** Parts that are the same for every reader, except for the examples in `forms`. */
const LANGUAGE = ['functions', 'operators', 'forms'] as const;
export const SCHEMA_PARTS = [...OBJECTS, ...LANGUAGE] as const;
export type SchemaPart = (typeof SCHEMA_PARTS)[number];

/** Maximum number of names in one request. */
export const MOST_NAMES = 50;

/** The requested part of the schema: members by name, whole lists, or a page of the index starting at object `from`. */
export type SchemaSelection =
  | {
      readonly kind: 'part';
      readonly names: readonly string[] | null;
      readonly parts: readonly SchemaPart[] | null;
    }
  | { readonly kind: 'index'; readonly from: number };

interface NotFound {
  readonly name: string;
  readonly near: string | null;
}

/** The objects selected from a view, before they are described. */
export interface SchemaChoice {
  readonly view: Pick<GraphView, 'entities' | 'facets' | 'metrics' | 'links'>;
  readonly functions: ReturnType<typeof functionEntries>;
  readonly operators: ReturnType<typeof operatorEntries>;
  readonly forms: ReturnType<typeof formEntries>;
  readonly notFound: readonly NotFound[];
}

/** Maximum number of unknown names for which similar names are suggested: each search scans the whole view. */
const MOST_COMPARED = 3;

export function chooseObjects(
  view: GraphView,
  { names, parts }: Extract<SchemaSelection, { kind: 'part' }>,
  hasDecoder: boolean,
): SchemaChoice {
  const wanted = names === null ? null : new Set(names.map((name) => name.toLowerCase()));
  const found = new Set<string>();
  const choose = <T extends { readonly name: string }>(
    part: SchemaPart,
    list: () => readonly T[],
    fullName: ((name: string) => string) | null = null,
  ): readonly T[] => {
    if (parts !== null && !parts.includes(part)) return [];
    if (wanted === null) return list();
    return list().filter(({ name }) => {
      const called = [name, fullName?.(name) ?? name].map((one) => one.toLowerCase());
      const known = called.filter((one) => wanted.has(one));
      for (const one of known) found.add(one);
      return known.length > 0;
    });
  };
  const chosen = {
    view: {
      entities: choose('entities', () => view.entities, entityName),
      facets: choose('facets', () => view.facets, facetName),
      metrics: choose('metrics', () => view.metrics, metricName),
      links: choose('relationships', () => view.links),
    },
    functions: choose('functions', functionEntries),
    operators: choose('operators', () => operatorEntries(hasDecoder)),
    forms: choose('forms', () => formEntries(view)),
  };
  const lost = (names ?? []).filter((name) => !found.has(name.toLowerCase()));
  const known = lost.length === 0 ? [] : namesIn(view);
  const notFound = lost.map((name, i) => ({ name, near: i < MOST_COMPARED ? nearest(name, known) : null }));
  return { ...chosen, notFound };
}

function namesIn({ entities, facets, metrics, links }: GraphView): readonly string[] {
  return [...entities, ...facets, ...metrics, ...links].map(({ name }) => name);
}

/** Describes the selected members, omitting null, empty and default values. */
export function schemaPart(
  view: GraphView,
  { view: chosen, functions, operators, forms, notFound }: SchemaChoice,
  full: boolean,
  indexed: ReadonlyMap<string, string>,
): object {
  const shapes = schemaShapes(view, full, indexed);
  return compact({
    entities: chosen.entities.map(shapes.entity),
    facets: chosen.facets.map(shapes.facet),
    metrics: chosen.metrics.map(shapes.metric),
    relationships: chosen.links.map(shapes.relationship),
    functions,
    operators,
    forms,
    not_found: notFound,
  });
}

/** Default values, which are omitted from the schema. */
const USUAL: Readonly<Record<string, unknown>> = {
  nullable: true,
  masked: 'none',
  use: 'rows',
  available: true,
};

function compact<T>(value: T): T {
  if (Array.isArray(value)) return value.map(compact) as T; // cast: elements keep their type
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([name, member]) => {
    const isEmpty = member === null || (Array.isArray(member) && member.length === 0);
    return !isEmpty && USUAL[name] !== member;
  });
  return Object.fromEntries(kept.map(([name, member]) => [name, compact(member)])) as T; // members keep their type
}

const PAGE_BYTES = 6_000;
/** Maximum length of a description in the index, in UTF-16 code units. */
const SHORT = 160;
/** Maximum number of columns listed for an entity in the index. */
const MOST_COLUMNS = 40;

/** Returns one page of the index, which has a short entry for each object. */
export function schemaIndex(view: GraphView, from: number): object {
  const all = [
    ...view.entities.map((e) => (): object => indexedEntity(e)),
    ...view.facets.map((f) => (): object => indexedFacet(f)),
    ...view.metrics.map((m) => (): object => indexedMetric(m)),
    ...view.links.map((l) => (): object => indexedLink(l)),
  ];
  const objects: object[] = [];
  let left = PAGE_BYTES;
  for (let i = from; i < all.length; i++) {
    const object = compact(all[i]?.() ?? {});
    left -= Buffer.byteLength(JSON.stringify(object)) + 1;
    if (left < 0 && objects.length > 0) break;
    objects.push(object);
  }
  const next = from + objects.length;
  return {
    objects,
    next: next < all.length ? next : null,
    counts: {
      entities: view.entities.length,
      facets: view.facets.length,
      metrics: view.metrics.length,
      relationships: view.links.length,
    },
    features: featuresOf(view),
  };
}

function indexedEntity({ name, description, deprecated, columns }: EntityView) {
  const shown = columns.slice(0, MOST_COLUMNS).map((c) => c.name);
  const more = columns.length > shown.length ? [`… ${columns.length - shown.length} more`] : [];
  return { kind: 'entity', name, description: short(description), deprecated, columns: [...shown, ...more] };
}

function indexedFacet({ name, description, deprecated, entity }: FacetView) {
  return { kind: 'facet', name, description: short(description), deprecated, entity };
}

function indexedMetric({ name, description, deprecated, entity }: MetricView) {
  return { kind: 'metric', name, description: short(description), deprecated, entity };
}

function indexedLink({ name, description, deprecated, from, to, bridge }: LinkView) {
  const ends = { from: from.entity, to: to.entity, bridge: bridge?.name ?? null };
  return { kind: 'relationship', name, description: short(description), deprecated, ...ends };
}

function short(text: string | null): string | null {
  return text === null || text.length <= SHORT ? text : `${text.slice(0, SHORT)}…`;
}
