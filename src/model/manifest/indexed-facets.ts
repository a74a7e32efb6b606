import type { Facet, Manifest } from './manifest.js';

/** Everything that has stores: each facet, and behind it its lexical leg where it has one. */
export function indexedFacets({ facets }: Pick<Manifest, 'facets'>): readonly Facet[] {
  return [...facets.values()].flatMap((f) => (f.lexicalLeg === null ? [f] : [f, f.lexicalLeg]));
}

/** The facet or leg that goes by `name`. */
export function indexedFacet(manifest: Pick<Manifest, 'facets'>, name: string): Facet | null {
  return manifest.facets.get(name) ?? indexedFacets(manifest).find((f) => f.name === name) ?? null;
}
