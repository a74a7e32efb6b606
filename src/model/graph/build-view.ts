import {
  type Access,
  ALL_FEATURES,
  type Catalog,
  type CumulativeMetric,
  type Edge,
  type FacetStore,
  type Metric,
  metricType,
  PASSAGE_COLUMNS,
  type Relation,
  type RelationAccess,
  servedVersion,
  type VisibleColumn,
  visibleColumns,
} from 'osl-compiler';
import { atOnce, mapInSteps } from '../../base/in-turns.js';
import { deprecationOf, type EntityFacts, everythingIn, type Manifest } from '../manifest/index.js';
import {
  type BridgeView,
  type ColumnView,
  type DerivedView,
  type EntityView,
  type FacetView,
  type GraphView,
  groupedBy,
  type LinkView,
  type MetricView,
  measuredType,
  type VisibleRelation,
} from './view.js';

/** Returns the graph that is visible with `access`, limited to the objects in `within`. */
export function governedView(
  manifest: Manifest,
  access: Access,
  within: GraphPart = manifest.catalog,
): GraphView {
  return atOnce(new Viewer(manifest, access, false).view(within));
}

/** Objects of a catalog, by name. */
export type GraphPart = Pick<Catalog, 'relations' | 'metrics' | 'facets'>;

export function governedViewSteps(manifest: Manifest, access: Access): Generator<void, GraphView> {
  return new Viewer(manifest, access, false).view();
}

/** Computes the facets of `governedView`, one at a time. */
export function governedFacets(manifest: Manifest, access: Access): Generator<FacetView> {
  return new Viewer(manifest, access, false).facets();
}

/** Returns the whole graph, with labels and definitions, for an admin. */
export function fullView(manifest: Manifest): GraphView {
  return atOnce(fullViewSteps(manifest));
}

export function fullViewSteps(manifest: Manifest): Generator<void, GraphView> {
  return new Viewer(manifest, everythingIn(manifest.catalog), true).view();
}

function labelName(label: unknown): string {
  return typeof label === 'string' ? label : String(Object(label).label);
}

class Viewer {
  readonly #manifest: Manifest;
  readonly #access: Access;
  readonly #full: boolean;
  readonly #synonyms: ReadonlyMap<string, readonly string[]>;

  constructor(manifest: Manifest, access: Access, full: boolean) {
    this.#manifest = manifest;
    this.#access = access;
    this.#full = full;
    this.#synonyms = synonymsOf(manifest);
  }

  *facets(): Generator<FacetView> {
    const { relations, facets } = this.#manifest.catalog;
    for (const facet of facets.values()) {
      const relation = relations.get(facet.name);
      const seen = relation === undefined ? null : this.#relation(relation);
      yield* this.#facet(facet, seen ?? undefined);
    }
  }

  /** Builds the view, yielding often enough for the process to serve other requests. */
  *view(within: GraphPart = this.#manifest.catalog): Generator<void, GraphView> {
    const { catalog } = this.#manifest;
    const visible = yield* mapInSteps(within.relations.values(), (r) => this.#relation(r));
    const relations = new Map(visible.flatMap((r) => (r === null ? [] : [[r.relation.name, r] as const])));
    const facets = (yield* mapInSteps(within.facets.values(), (f) =>
      this.#facet(f, relations.get(f.name)),
    )).flat();
    const shown = new Set(facets.map(({ name }) => name));
    const stores = [...within.facets.values()].filter(({ name }) => shown.has(name));
    const facetsOf = groupedBy(stores, ({ entity }) => entity);
    const metrics = (yield* mapInSteps(within.metrics.values(), (m) => this.#metric(m, relations))).flat();
    const measured = new Set(metrics.map((m) => m.entity));
    const entities = (yield* mapInSteps(this.#manifest.entities.values(), (e) =>
      this.#entity(e, relations.get(e.name), shown, facetsOf.get(e.name) ?? []),
    ))
      .flat()
      .filter((e) => e.columns.length > 0 || measured.has(e.name));
    const links = (yield* mapInSteps(catalog.edges, (edge) =>
      linkOf(edge, this.#manifest, relations),
    )).flat();
    const { features = ALL_FEATURES, joins = 'declared' } = catalog;
    return Object.freeze({
      entities,
      facets,
      metrics,
      links,
      features,
      joins,
    });
  }

  /** Returns the visible part of a relation; null if neither its columns nor its metrics can be used. */
  #relation(relation: Relation): VisibleRelation | null {
    const rights = this.#access.relations.get(relation.name);
    if (rights === undefined) return null;
    const columns = visibleColumns(relation, this.#manifest.catalog, this.#access);
    const measured = rights.grants.some((g) => (g.groups?.metrics ?? null) !== null);
    if (columns.length === 0 && !measured) return null;
    const joinable = new Set(columns.filter((c) => c.joinable).map((c) => c.column.name));
    return { relation, rights, views: columns.map((c) => this.#column(relation, c)), joinable };
  }

  #column(relation: Relation, { column, masked, rows }: VisibleColumn): ColumnView {
    const { name, type, description, nullable, sensitivity } = column;
    const required = !nullable || relation.primaryKey.includes(name);
    return {
      name,
      type,
      description,
      nullable: !required || masked !== 'none',
      masked,
      rows,
      synonyms: this.#synonymsFor(`${relation.name}.${name}`),
      sensitivity: this.#full ? sensitivity : null,
    };
  }

  #entity(
    facts: EntityFacts,
    seen: VisibleRelation | undefined,
    shownFacets: ReadonlySet<string>,
    facets: readonly FacetStore[],
  ): readonly EntityView[] {
    if (seen === undefined) return [];
    const { name, description, primaryKey, sealedKeys, timeDimension } = seen.relation;
    const shown = new Set(seen.views.map((c) => c.name));
    const legs = facts.legs.filter((leg) => shownFacets.has(leg));
    const derived = this.#derived(name, facets);
    // The declared composition would reveal that there is content that the reader may not see.
    const composition =
      this.#full || legs.length > 0 || derived.length > 0 ? facts.composition : 'structured';
    return [
      {
        name,
        description,
        deprecated: deprecationOf(this.#manifest, 'entities', name),
        composition,
        columns: seen.views,
        primaryKey: primaryKey.every((k) => shown.has(k)) ? primaryKey : [],
        sealedKeys: sealedKeys.filter((k) => seen.joinable.has(k)),
        timeDimension: timeDimension !== undefined && shown.has(timeDimension) ? timeDimension : null,
        derived,
        ...groupsOf(seen.rights),
        legs,
        synonyms: this.#synonymsFor(name),
      },
    ];
  }

  #derived(entity: string, facets: readonly FacetStore[]): readonly DerivedView[] {
    return facets.flatMap((f) =>
      f.derived.map(({ name, type, description }) => {
        return { name, type, description, facet: f.name, synonyms: this.#synonymsFor(`${entity}.${name}`) };
      }),
    );
  }

  #facet(store: FacetStore, seen: VisibleRelation | undefined): readonly FacetView[] {
    const { catalog, facets } = this.#manifest;
    const facet = facets.get(store.name);
    if (facet === undefined || seen === undefined) return [];
    if (!this.#full && servedVersion(store, catalog, this.#access) === null) return [];
    const shown = new Set(seen.views.map((c) => c.name));
    return [
      {
        name: store.name,
        description: facet.description,
        deprecated: deprecationOf(this.#manifest, 'facets', store.name),
        entity: store.entity,
        entityKey: store.entityKey,
        keyOfEntity: store.keyOfEntity,
        embeddingModel: facet.embeddingModel,
        maxTopK: store.maxTopK,
        modes: store.lexicalLeg === undefined ? [store.lane] : ['hybrid', 'lexical', 'dense'],
        rerankers: facet.rerankers,
        labels: (this.#manifest.facets.get(store.name)?.labels ?? []).map(labelName),
        // The columns that all passages have take precedence over metadata of the same name.
        columns: seen.views.filter((c) => !PASSAGE_COLUMNS.has(c.name)),
        indexed: store.scalarIndexed.filter((name) => shown.has(name)),
        synonyms: this.#synonymsFor(store.name),
      },
    ];
  }

  #metric(metric: Metric, relations: ReadonlyMap<string, VisibleRelation>): readonly MetricView[] {
    if (metric.entity !== null && !relations.has(metric.entity)) return [];
    const type = metricType(metric, this.#manifest.catalog, this.#access);
    if (type === null) return [];
    const { name, description, entity } = metric;
    const kind = kindOf(metric);
    const measurable = measuredType(metric, this.#manifest, this.#access) !== null;
    const definition = this.#full ? definitionOf(metric) : null;
    const synonyms = this.#synonymsFor(name);
    const deprecated = deprecationOf(this.#manifest, 'metrics', name);
    const format = metric.format ?? null;
    return [{ name, description, deprecated, entity, kind, type, format, measurable, synonyms, definition }];
  }

  #synonymsFor(target: string): readonly string[] {
    return this.#synonyms.get(target) ?? [];
  }
}

function groupsOf({ grants }: RelationAccess): Pick<EntityView, 'minimumGroupSize' | 'aggregates'> {
  const sizes = grants.flatMap((g) => (g.groups === undefined ? [] : [g.groups.minimum]));
  return {
    minimumGroupSize: sizes.length === 0 ? null : Math.max(...sizes),
    aggregates: grants.some((g) => (g.groups?.metrics ?? null) === null),
  };
}

function definitionOf(metric: Metric): Readonly<Record<string, unknown>> {
  switch (metric.type) {
    case 'simple':
      return { expression: metric.expression, filter: metric.filter };
    case 'ratio':
      return { numerator: metric.numerator, denominator: metric.denominator };
    case 'derived':
      return { expression: metric.expression };
    case 'conversion':
      return {
        base: metric.base,
        conversion: metric.conversion,
        constant_properties: metric.same,
        ...(metric.window === null ? {} : definitionOfSpan(metric.window)),
        calculation: metric.calculation,
      };
    case 'cumulative': {
      const { metric: base, span } = metric;
      return { metric: base, ...definitionOfSpan(span) };
    }
  }
}

/** Returns the properties with which a manifest declares a span, such as `window: 7 days`. */
export function definitionOfSpan(span: CumulativeMetric['span']): Readonly<Record<string, string>> {
  switch (span.kind) {
    case 'unbounded':
      return {};
    case 'window':
      return { window: `${span.count} ${span.unit}s` };
    case 'to_date':
      return { grain_to_date: span.grain };
    case 'offset':
      return { offset_window: `${span.count} ${span.unit}s` };
    case 'offset_to_grain':
      return { offset_to_grain: span.grain };
  }
}

function kindOf(metric: Metric): MetricView['kind'] {
  const { type } = metric;
  if (type !== 'cumulative') return type;
  return metric.span.kind === 'offset' || metric.span.kind === 'offset_to_grain' ? 'offset' : type;
}

/** Returns terms and synonyms by the object that they refer to: `entity`, `entity.column`, a metric or a facet. */
function synonymsOf(manifest: Manifest): ReadonlyMap<string, readonly string[]> {
  const words = new Map<string, string[]>();
  for (const { term, refersTo, synonyms } of manifest.lexicon.values()) {
    const known = words.get(refersTo) ?? [];
    words.set(refersTo, [...known, term, ...synonyms]);
  }
  return words;
}

type VisibleRelations = ReadonlyMap<string, VisibleRelation>;

/** Returns the link that `edge` declares; an empty list if the reader may not join on both ends and on any bridge. */
function linkOf(edge: Edge, manifest: Manifest, relations: VisibleRelations): readonly LinkView[] {
  const { name, from, to, fromColumns, toColumns } = edge;
  if (!canJoin(relations.get(from), fromColumns) || !canJoin(relations.get(to), toColumns)) return [];
  const places = [from, to, edge.bridge?.name ?? from].map((n) => relations.get(n)?.relation.connector);
  const ends = {
    from: { entity: from, columns: fromColumns },
    to: { entity: to, columns: toColumns },
    followed: new Set(places).size === 1,
  };
  if (edge.bridge === null) {
    const declared = manifest.relationships.get(name);
    const kind = declared?.kind ?? 'many_to_one';
    const deprecated = deprecationOf(manifest, 'relationships', name);
    return [{ name, description: declared?.description ?? null, deprecated, kind, ...ends, bridge: null }];
  }
  const bridge = bridgeOf(edge.bridge, relations.get(edge.bridge.name));
  if (bridge === null) return [];
  const description = relations.get(name)?.relation.description ?? null;
  const deprecated = deprecationOf(manifest, 'bridges', name);
  return [{ name, description, deprecated, kind: 'many_to_many', ...ends, bridge }];
}

function bridgeOf(
  { name, fromColumns, toColumns }: NonNullable<Edge['bridge']>,
  seen: VisibleRelation | undefined,
): BridgeView | null {
  if (seen === undefined || !canJoin(seen, [...fromColumns, ...toColumns])) return null;
  const sealedKeys = seen.relation.sealedKeys.filter((k) => seen.joinable.has(k));
  return { name, fromColumns, toColumns, columns: seen.views, sealedKeys };
}

function canJoin(seen: VisibleRelation | undefined, columns: readonly string[]): boolean {
  return seen !== undefined && columns.every((c) => seen.joinable.has(c));
}
