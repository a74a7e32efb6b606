import { createHash } from 'node:crypto';
import { type Features, featuresBy, type Relation } from 'osl-compiler';
import { deprecatedIn } from '../deprecated.js';
import type { Path, Problem } from '../diagnostic.js';
import type { EntityDocument, ManifestDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Connector, EntityFacts, Facet, Manifest } from '../manifest.js';
import { cacheRuleOf } from './cache.js';
import { withComputed } from './computed.js';
import { connectorsOf } from './connectors.js';
import { edgesOf, facetRelations, facetStores } from './content.js';
import { derivedOf } from './derived.js';
import { withKeyDomains } from './domains.js';
import { facetsOf } from './facets.js';
import { lexiconOf } from './lexicon.js';
import { bridgesOf, relationshipsOf } from './links.js';
import { checkMetricTexts } from './metric-text.js';
import { metricsOf, oneSpelling } from './metrics.js';
import { checkNames } from './names.js';
import { rawTablesOf } from './raw-sql.js';
import { relationsOf } from './relations.js';
import { rerankersOf } from './rerankers.js';
import { rollupsOf } from './rollups.js';
import { membersOf, Problems } from './scope.js';

/** The frozen manifest, or everything that is wrong with the document's meaning. */
export type Compiled =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Pure: the same document gives the same manifest. `ready()` of osl-compiler must have been awaited. */
export function compileManifest(document: ManifestDocument): Compiled {
  const problems = new Problems();
  checkNames(document, problems);
  const connectors = connectorsOf(document, problems);
  const declared = relationsOf(document, connectors, problems);
  const relationships = relationshipsOf(document, declared, problems);
  const bridges = bridgesOf(document, declared, problems);
  const plain = withKeyDomains(declared, relationships.values(), bridges.values());
  const edges = edgesOf(relationships, bridges);
  const relations = withComputed(document, plain, edges, problems);
  const metrics = metricsOf(document, relations, edges, problems);
  oneSpelling(document.facets, 'facets', problems);
  const derived = derivedOf(document, relations, problems);
  const rerankers = rerankersOf(document);
  const rollups = rollupsOf(document, relations, connectors, problems);
  const facets = facetsOf(document, { connectors, relations, rerankers }, derived, problems);
  const entities = entitiesOf(document, { connectors, relations, facets }, problems);
  const lexicon = lexiconOf(document, { relations, metrics, facets }, problems);
  const rawTables = rawTablesOf(document, connectors, relations, problems);
  const version = contentHash(document);
  const catalog = Object.freeze({
    version,
    relations: frozenMap([...relations, ...facetRelations(facets, relations, problems)]),
    metrics,
    facets: frozenMap(facetStores(facets, relations, rerankers)),
    edges,
    rawTables,
    joins: document.features?.joins ?? 'declared',
    features: featuresOf(document),
    rollups: Object.freeze([...rollups.values()].map((r) => r.rollup)),
    ...(document.traverse?.max_per_hop === undefined ? {} : { maxPerHop: document.traverse.max_per_hop }),
    ...(document.operators?.max_rows === undefined ? {} : { maxOperatedRows: document.operators.max_rows }),
  });
  checkMetricTexts(catalog, problems);
  if (problems.list.length > 0) return { ok: false, problems: problems.list };

  const tenant = document.tenant ?? null;
  const parts = { entities, bridges, relationships, rerankers, rollups, facets, lexicon };
  const rest = { connectors, catalog, ...parts };
  const deprecated = deprecatedIn(document);
  return { ok: true, manifest: Object.freeze({ version, tenant, ...rest, deprecated, document }) };
}

function featuresOf({ features }: ManifestDocument): Features {
  return featuresBy((name) => features?.[name] ?? true);
}

/** Not RFC 8785, which sorts names: the order of columns is the order of `*`, so that it must count. */
function contentHash(document: ManifestDocument): string {
  return createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 32);
}

function entitiesOf(
  document: ManifestDocument,
  known: {
    readonly connectors: ReadonlyMap<string, Connector>;
    readonly relations: ReadonlyMap<string, Relation>;
    readonly facets: ReadonlyMap<string, Facet>;
  },
  problems: Problems,
): ReadonlyMap<string, EntityFacts> {
  const { connectors, relations, facets } = known;
  return frozenMap(
    membersOf(document.entities).flatMap(([name, e]): [string, EntityFacts][] => {
      const relation = relations.get(name);
      if (relation === undefined) return [];
      mustBeFacets(e, ['entities', name, 'legs'], facets, problems);
      const legs = Object.freeze([...(e.legs ?? [])]);
      const composition = e.composition ?? (legs.length > 0 ? 'structured+content' : 'structured');
      const cache = cacheRuleOf(e.cache, relation, connectors, problems);
      return [[name, Object.freeze({ name, composition, legs, cache })]];
    }),
  );
}

function mustBeFacets(
  e: EntityDocument,
  path: Path,
  facets: ReadonlyMap<string, Facet>,
  problems: Problems,
): void {
  for (const [i, leg] of (e.legs ?? []).entries()) {
    if (!facets.has(leg)) problems.unknown([...path, i], 'facet', leg, facets.keys());
  }
}
