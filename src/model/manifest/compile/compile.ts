import { createHash } from 'node:crypto';
import { type Column, type Features, featuresBy, type Metric, type Relation } from 'osl-compiler';
import {
  CODES,
  membersOf,
  type Path,
  Problems,
  type RelationMap,
  type UnplacedDiagnostic,
} from '../diagnostic.js';
import type { ColumnsDocument, ManifestDocument } from '../document.js';
import {
  type Bridge,
  type Connector,
  deprecatedIn,
  type EntityFacts,
  type Facet,
  frozenMap,
  type GlossaryTerm,
  type Manifest,
  type Relationship,
  type RerankerSettings,
} from '../manifest.js';
import { isModelName } from '../name.js';
import { derivedOf, withComputed } from './computed.js';
import { connectorsOf } from './connectors.js';
import { facetRelations, facetStores, facetsOf } from './facets.js';
import { bridgesOf, columnNamed, edgesOf, entityNamed, relationshipsOf } from './links.js';
import { checkMetricTexts, checkSpelling, metricsOf } from './metrics.js';
import { rawTablesOf, relationsOf } from './relations.js';
import { cacheRuleOf, rollupsOf } from './rollups.js';

/** The frozen manifest, or all semantic errors in the document. */
type CompileResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly UnplacedDiagnostic[] };

/** Compiles a manifest. Pure: equal documents give equal manifests. Requires `ready()` of osl-compiler. */
export function compileManifest(document: ManifestDocument): CompileResult {
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
  checkSpelling(document.facets, 'facets', problems);
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

/**
 * Hash of the document's content. Not canonicalized by RFC 8785, which sorts names: the order of columns determines the
 * order of `*`, so it must affect the hash.
 */
function contentHash(document: ManifestDocument): string {
  return createHash('sha256').update(JSON.stringify(document)).digest('hex').slice(0, 32);
}

function entitiesOf(
  document: ManifestDocument,
  known: {
    readonly connectors: ReadonlyMap<string, Connector>;
    readonly relations: RelationMap;
    readonly facets: ReadonlyMap<string, Facet>;
  },
  problems: Problems,
): ReadonlyMap<string, EntityFacts> {
  const { connectors, relations, facets } = known;
  return frozenMap(
    membersOf(document.entities).flatMap(([name, e]): [string, EntityFacts][] => {
      const relation = relations.get(name);
      if (relation === undefined) return [];
      problems.unknownIn(['entities', name, 'legs'], 'facet', e.legs, facets.keys());
      const legs = Object.freeze([...(e.legs ?? [])]);
      const composition = e.composition ?? (legs.length > 0 ? 'structured+content' : 'structured');
      const cache = cacheRuleOf(e.cache, relation, connectors, problems);
      return [[name, Object.freeze({ name, composition, legs, cache })]];
    }),
  );
}

/**
 * Sets the `keyDomain` of every sealed key, so that a `hash` mask gives linked columns equal values. A domain is named
 * after the key that its links lead to (`package.path`). A sealed key without links is a separate domain.
 */
function withKeyDomains(
  relations: RelationMap,
  relationships: Iterable<Relationship>,
  bridges: Iterable<Bridge>,
): RelationMap {
  const target = new Map<string, string>();
  for (const { from, to } of relationships) {
    for (const [i, column] of from.columns.entries())
      link(target, `${from.entity}.${column}`, `${to.entity}.${to.columns[i]}`);
  }
  for (const b of bridges) {
    for (const side of [b.left, b.right]) {
      for (const [i, column] of side.columns.entries()) {
        link(target, `${b.name}.${column}`, `${side.entity}.${side.keys[i]}`);
      }
    }
  }
  return frozenMap([...relations].map(([name, r]): [string, Relation] => [name, withDomains(r, target)]));
}

/** Merges the domain of `from` into that of `to`; no effect if both are in the same domain already. */
function link(target: Map<string, string>, from: string, to: string): void {
  const a = root(target, from);
  const b = root(target, to);
  if (a !== b) target.set(a, b);
}

function root(target: ReadonlyMap<string, string>, column: string): string {
  let at = column;
  for (let next = target.get(at); next !== undefined; next = target.get(at)) at = next;
  return at;
}

function withDomains(relation: Relation, target: ReadonlyMap<string, string>): Relation {
  const sealed = new Set(relation.sealedKeys);
  const columns = relation.columns.map((c): Column => {
    return sealed.has(c.name)
      ? Object.freeze({ ...c, keyDomain: root(target, `${relation.name}.${c.name}`) })
      : c;
  });
  return Object.freeze({ ...relation, columns: Object.freeze(columns) });
}

interface CompiledGraph {
  readonly relations: RelationMap;
  readonly metrics: ReadonlyMap<string, Metric>;
  readonly facets: ReadonlyMap<string, Facet>;
}

function lexiconOf(
  document: ManifestDocument,
  graph: CompiledGraph,
  problems: Problems,
): ReadonlyMap<string, GlossaryTerm> {
  const out: [string, GlossaryTerm][] = [];
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
  graph: CompiledGraph,
  problems: Problems,
): GlossaryTerm['kind'] | null {
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

/** Refuses names that the schema's pattern cannot exclude: those that Postgres would truncate, and those not in NFC. */
function checkNames(document: ManifestDocument, problems: Problems): void {
  const check = (name: string, path: Path): void => {
    if (isModelName(name)) return;
    const composed = name.normalize('NFC');
    const hint =
      composed === name
        ? 'a name has 63 bytes of UTF-8 at most: give a shorter one, and the upstream one as `column`'
        : `write it composed (NFC): \`${composed}\``;
    problems.add(CODES.badName, path, `\`${name}\` cannot be a name here`, hint, true);
  };
  const columns = (listed: ColumnsDocument | undefined, path: Path): void => {
    for (const [step, name] of namesIn(listed)) check(name, [...path, step]);
  };
  for (const section of ['entities', 'bridges', 'relationships', 'facets', 'metrics'] as const)
    for (const name of Object.keys(document[section] ?? {})) check(name, [section, name]);
  for (const [name, entity] of membersOf(document.entities)) {
    columns(entity.columns, ['entities', name, 'columns']);
    for (const part of ['computed', 'derived'] as const)
      for (const column of Object.keys(entity[part] ?? {})) check(column, ['entities', name, part, column]);
  }
  for (const [name, bridge] of membersOf(document.bridges))
    columns(bridge.columns, ['bridges', name, 'columns']);
  for (const [name, facet] of membersOf(document.facets))
    columns(facet.metadata, ['facets', name, 'metadata']);
}

function namesIn(columns: ColumnsDocument | undefined): readonly (readonly [string | number, string])[] {
  if (columns === undefined) return [];
  const isList = (listed: ColumnsDocument): listed is readonly string[] => Array.isArray(listed);
  return isList(columns)
    ? columns.map((name, i) => [i, name] as const)
    : Object.keys(columns).map((name) => [name, name] as const);
}

const MIB = 1_048_576;

function rerankersOf({ rerankers }: ManifestDocument): ReadonlyMap<string, RerankerSettings> {
  return frozenMap(
    membersOf(rerankers).map(([name, r]): [string, RerankerSettings] => [
      name,
      Object.freeze({
        name,
        protocol: r.protocol,
        urlEnv: r.url_env,
        model: r.model,
        candidates: r.candidates ?? 50,
        timeoutMs: r.timeout_ms ?? 10_000,
        concurrency: r.concurrency ?? 4,
        cacheBytes: (r.cache_mib ?? 16) * MIB,
        perDay: r.passages_per_day ?? null,
      }),
    ]),
  );
}
