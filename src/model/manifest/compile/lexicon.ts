import type { Metric, Relation } from 'osl-compiler';
import type { ManifestDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Facet, Term } from '../manifest.js';
import { columnNamed, entityNamed } from './links.js';
import { membersOf, type Problems } from './scope.js';

interface Graph {
  readonly relations: ReadonlyMap<string, Relation>;
  readonly metrics: ReadonlyMap<string, Metric>;
  readonly facets: ReadonlyMap<string, Facet>;
}

export function lexiconOf(
  document: ManifestDocument,
  graph: Graph,
  problems: Problems,
): ReadonlyMap<string, Term> {
  const out: [string, Term][] = [];
  for (const [term, t] of membersOf(document.lexicon)) {
    const kind = kindOf(t.refers_to, ['lexicon', term, 'refers_to'], graph, problems);
    if (kind === null) continue;
    const synonyms = Object.freeze([...(t.synonyms ?? [])]);
    out.push([term, Object.freeze({ term, refersTo: t.refers_to, kind, synonyms })]);
  }
  return frozenMap(out);
}

function kindOf(
  name: string,
  path: readonly string[],
  graph: Graph,
  problems: Problems,
): Term['kind'] | null {
  const dot = name.indexOf('.');
  if (dot !== -1) {
    const entity = entityNamed(name.slice(0, dot), path, graph.relations, problems);
    if (entity === null) return null;
    const column = name.slice(dot + 1);
    if (entity.computed?.some((c) => c.name === column) === true) return 'column';
    return columnNamed(column, path, entity, problems) === null ? null : 'column';
  }
  if (graph.relations.get(name)?.kind === 'entity') return 'entity';
  if (graph.metrics.has(name)) return 'metric';
  if (graph.facets.has(name)) return 'facet';
  problems.unknown(path, 'object', name, [
    ...graph.relations.keys(),
    ...graph.metrics.keys(),
    ...graph.facets.keys(),
  ]);
  return null;
}
