import type { Metric, Relation } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { ManifestDocument, Members } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Facet, Term } from '../manifest.js';
import { columnNamed, entityNamed } from './links.js';
import { membersOf, type Problems } from './scope.js';

/** Expressions are text here; the compiler's binder gives them their meaning. */
export function metricsOf(
  document: ManifestDocument,
  relations: ReadonlyMap<string, Relation>,
  problems: Problems,
): ReadonlyMap<string, Metric> {
  oneSpelling(document.metrics, 'metrics', problems);
  return frozenMap(
    membersOf(document.metrics).map(([name, m]): [string, Metric] => {
      entityNamed(m.entity, ['metrics', name, 'entity'], relations, problems);
      const metric: Metric = {
        name,
        description: m.description ?? null,
        entity: m.entity,
        type: 'simple',
        expression: m.expression,
        filter: m.filter ?? null,
      };
      return [name, Object.freeze(metric)];
    }),
  );
}

/** Names that differ in case only would be one name in SQL. */
export function oneSpelling(part: Members<unknown> | undefined, key: string, problems: Problems): void {
  const seen = new Map<string, string>();
  for (const [name] of membersOf(part)) {
    const before = seen.get(name.toLowerCase());
    if (before !== undefined) {
      const hint = `\`${before}\` is the same name: case does not count`;
      problems.add(CODES.duplicateName, [key, name], `\`${name}\` is declared twice`, hint, true);
    }
    seen.set(name.toLowerCase(), name);
  }
}

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
    return entity !== null && columnNamed(name.slice(dot + 1), path, entity, problems) !== null
      ? 'column'
      : null;
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
