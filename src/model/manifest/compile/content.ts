import { type Column, type Edge, type FacetStore, OPERATORS, type Relation } from 'osl-compiler';
import { findsByWords } from '../../facets/embedding-models.js';
import {
  bitsTable,
  derivedTable,
  metadataColumn,
  STORE_SCHEMA,
  storeTable,
  wordsTable,
} from '../../facets/store-names.js';
import { CODES } from '../codes.js';
import type { Bridge, Facet, Relationship, RerankerSettings } from '../manifest.js';
import type { Problems } from './scope.js';

/** Facets as relations that grants can name: the entity key and the metadata, no text. */
export function facetRelations(
  facets: ReadonlyMap<string, Facet>,
  relations: ReadonlyMap<string, Relation>,
  problems: Problems,
): readonly (readonly [string, Relation])[] {
  return [...facets.values()].map((facet) => {
    if (relations.has(facet.name)) {
      problems.add(
        CODES.conflict,
        ['facets', facet.name],
        `\`${facet.name}\` is also the name of an entity or bridge`,
        'give the facet a name of its own',
      );
    }
    return [facet.name, relationOf(facet)] as const;
  });
}

function relationOf(facet: Facet): Relation {
  const columns: readonly Column[] = [
    facet.entityKey,
    ...facet.metadata.filter((c) => c.name !== facet.entityKey.name),
  ];
  return Object.freeze({
    kind: 'facet',
    name: facet.name,
    description: facet.description,
    connector: facet.connector,
    schema: STORE_SCHEMA,
    table: facet.name,
    columns: Object.freeze(
      columns.map((c) => Object.freeze({ ...c, physical: physicalName(c.name, facet) })),
    ),
    primaryKey: Object.freeze([]),
    sealedKeys: Object.freeze([...new Set([facet.entityKey.name, ...facet.scalarIndexed])]),
  });
}

function physicalName(column: string, facet: Facet): string {
  return column === facet.entityKey.name ? 'entity_key' : metadataColumn(column);
}

export function facetStores(
  facets: ReadonlyMap<string, Facet>,
  relations: ReadonlyMap<string, Relation>,
  declared: ReadonlyMap<string, RerankerSettings>,
): readonly (readonly [string, FacetStore])[] {
  return [...facets.values()].map((facet) => {
    const rerankers = facet.rerankers.flatMap((r) => declared.get(r) ?? []);
    const store = Object.freeze({
      ...storeOf(facet, relations),
      rerankers: Object.freeze(
        rerankers.map((r) => Object.freeze({ name: r.name, candidates: r.candidates })),
      ),
    });
    const { lexicalLeg: leg, name } = facet;
    if (leg === null) return [name, store];
    const lexicalLeg = Object.freeze({ ...storeOf(leg, relations), name, indexedAs: leg.name });
    return [name, Object.freeze({ ...store, lexicalLeg })];
  });
}

function storeOf(facet: Facet, relations: ReadonlyMap<string, Relation>): FacetStore {
  return Object.freeze({
    name: facet.name,
    entity: facet.entity,
    entityKey: facet.entityKey.name,
    keyOfEntity: relations.get(facet.entity)?.primaryKey[0] ?? facet.entityKey.name,
    scalarIndexed: Object.freeze([...new Set([facet.entityKey.name, ...facet.scalarIndexed])]),
    maxTopK: facet.maxTopK,
    lane: findsByWords(facet.embeddingModel) ? ('lexical' as const) : ('dense' as const),
    approximate: facet.approximate,
    versions: Object.freeze(
      [...facet.versions.values()].map((v) =>
        Object.freeze({
          name: v.name,
          redacts: new Set(v.redact),
          searched: v.redact.length + v.detectors.length > 0,
          table: storeTable(facet.name, v.name),
          bits: bitsTable(facet.name, v.name),
          words: wordsTable(facet.name, v.name),
          derivedTable: derivedTable(facet.name, v.name),
        }),
      ),
    ),
    derived: Object.freeze(
      facet.derived.map(({ name, description, operator }) =>
        Object.freeze({ name, type: OPERATORS[operator].result, description }),
      ),
    ),
    connector: facet.connector,
    schema: STORE_SCHEMA,
  });
}

/** Relationships and bridges as edges for TRAVERSE. */
export function edgesOf(
  relationships: ReadonlyMap<string, Relationship>,
  bridges: ReadonlyMap<string, Bridge>,
): readonly Edge[] {
  const straight = [...relationships.values()].map(
    (r): Edge =>
      Object.freeze({
        name: r.name,
        from: r.from.entity,
        to: r.to.entity,
        fromColumns: r.from.columns,
        toColumns: r.to.columns,
        bridge: null,
      }),
  );
  const bridged = [...bridges.values()].map(
    (b): Edge =>
      Object.freeze({
        name: b.name,
        from: b.left.entity,
        to: b.right.entity,
        fromColumns: b.left.keys,
        toColumns: b.right.keys,
        bridge: Object.freeze({ name: b.name, fromColumns: b.left.columns, toColumns: b.right.columns }),
      }),
  );
  return Object.freeze([...straight, ...bridged]);
}
