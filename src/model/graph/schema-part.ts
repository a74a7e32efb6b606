import { nearest } from 'osl-compiler';
import { formEntries, functionEntries, operatorEntries } from './language.js';
import { entityName, facetName, metricName } from './names.js';
import { featuresOf, schemaShapes } from './schema.js';
import type { EntityView, FacetView, GraphView, LinkView, MetricView } from './view.js';

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

/** The chosen objects of a view, before they are described. */
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

/** Describes the chosen members. Null, empty and default values are left out. */
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

/** Default values, which are left out. */
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

/** One page of the index: a short entry for each object. */
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
