import { fullName, type Relation, unqualifiedName } from 'osl-compiler';
import type { GraphView } from './view.js';

/** Full name of an entity or bridge, as used in queries and in the audit log. */
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

/** Full names of all objects in a view, sorted and without duplicates, for the audit record. */
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

/** Full name of a relation in the catalog, or of one of its columns. */
export function objectName({ kind, name }: Relation, column: string | null = null): string {
  const owner = fullName(kind === 'facet' ? 'facets' : 'entities', name);
  return column === null ? owner : `${owner}.${column}`;
}

export interface CatalogName {
  readonly relation: string;
  readonly column: string | null;
}

/**
 * Parses `osl.entities.customer.email` or `customer.email`, and the names of facets in the same way. Names contain no
 * dots.
 */
export function objectNamed(name: string): CatalogName {
  const [relation = '', column] = unqualifiedName('facets', unqualifiedName('entities', name)).split('.');
  return { relation, column: column ?? null };
}

/** The name as the lexicon writes it: `customer.name` for `osl.entities.customer.name`. */
export function shortName(fqn: string): string {
  return fqn.replace(/^osl\.(?:entities|facets|metrics)\./, '');
}
