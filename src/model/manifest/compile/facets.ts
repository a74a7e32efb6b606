import { type Column, columnOf, type FacetStore, OPERATORS, type Relation } from 'osl-compiler';
import { checkArguments, InvalidArgument } from '../../facets/arguments.js';
import { findsByWords, LEXICAL_MODEL } from '../../facets/retrieval-options.js';
import {
  bitsTable,
  derivedTable,
  metadataColumn,
  STORE_SCHEMA,
  storeTable,
  wordsTable,
} from '../../facets/store-names.js';
import { CODES, membersOf, type Path, type Problems, type RelationMap } from '../diagnostic.js';
import type { FacetDocument, ManifestDocument } from '../document.js';
import {
  type DeclaredFacetVersion,
  type DerivedAttributeSettings,
  type Facet,
  type FacetEmbedding,
  frozenMap,
  type Manifest,
  type RerankerSettings,
  type Table,
} from '../manifest.js';
import { sourceOf } from './connectors.js';
import { entityNamed, mustMatch } from './links.js';
import { columnsOf, declaredColumnNamed } from './relations.js';

const DEFAULT_MAX_CHARS = 1200;
const DEFAULT_OVERLAP_CHARS = 150;

interface WithRelations {
  readonly relations: RelationMap;
}

export function facetsOf(
  document: ManifestDocument,
  { connectors, relations, rerankers }: Pick<Manifest, 'connectors' | 'rerankers'> & WithRelations,
  derived: ReadonlyMap<string, readonly DerivedAttributeSettings[]>,
  problems: Problems,
): ReadonlyMap<string, Facet> {
  const out: [string, Facet][] = [];
  for (const [name, f] of membersOf(document.facets)) {
    const path: Path = ['facets', name];
    const source = sourceOf(f.source, [...path, 'source'], connectors, problems);
    const entity = entityNamed(f.entity, [...path, 'entity'], relations, problems);
    if (source === null || entity === null) continue;
    const columns = facetColumns(f, path, source.table, entity, problems);
    if (columns === null) continue;
    problems.unknownIn(
      [...path, 'retrieval', 'rerankers'],
      'reranker',
      f.retrieval.rerankers,
      rerankers.keys(),
    );
    const plain = facetOf(name, f, source.connector, source.table, columns, path, problems);
    const own = Object.freeze((derived.get(f.entity) ?? []).filter((d) => d.facet === name));
    const lexicalLeg = f.retrieval.hybrid === true ? lexicalLegOf(plain) : null;
    out.push([name, Object.freeze({ ...plain, derived: own, lexicalLeg, legOf: null })]);
  }
  return frozenMap(out);
}

function lexicalLegOf(facet: PlainFacet): Facet {
  const { name } = facet;
  return Object.freeze({
    ...facet,
    name: `${name}.lexical`,
    embeddingModel: LEXICAL_MODEL,
    approximate: false,
    derived: Object.freeze([]),
    lexicalLeg: null,
    legOf: name,
  });
}

type PlainFacet = Omit<Facet, 'derived' | 'lexicalLeg' | 'legOf'>;

function labelsOf({ labels = [] }: FacetDocument, path: Path, problems: Problems): readonly unknown[] {
  if (labels.length === 0) return Object.freeze([]);
  try {
    checkArguments('CLASSIFY', { labels });
  } catch (error) {
    if (!(error instanceof InvalidArgument)) throw error;
    problems.add(CODES.badExpression, [...path, 'labels'], error.message);
  }
  return Object.freeze([...labels]);
}

type FacetColumns = Pick<Facet, 'entityKey' | 'documentId' | 'text' | 'metadata'>;

function facetColumns(
  f: FacetDocument,
  path: Path,
  table: Table,
  entity: Relation,
  problems: Problems,
): FacetColumns | null {
  const one = (key: 'entity_key' | 'document_id' | 'text'): Column | null => {
    const column = declaredColumnNamed(f[key], [...path, key], table, problems);
    if (column === null) return null;
    const { name, type, stored, sensitivity, nullable } = column;
    if (stored !== null) {
      const message = `\`${name}\` is stored as ${stored}: a facet reads no such column as its ${key}`;
      problems.add(CODES.typeMismatch, [...path, key], message, 'read a view that casts it to text');
    }
    return Object.freeze({
      name,
      physical: name,
      type,
      sensitivity,
      nullable: nullable ?? true,
      description: null,
      keyDomain: null,
    });
  };
  const metadata = columnsOf(f.metadata ?? [], [...path, 'metadata'], table, [], problems);
  const [entityKey, documentId, text] = [one('entity_key'), one('document_id'), one('text')];
  if (entityKey === null || documentId === null || text === null) return null;
  const other = metadata.find((c) => c.name === entityKey.name && c.physical !== entityKey.physical);
  if (other !== undefined)
    problems.add(
      CODES.duplicateName,
      [...path, 'metadata', other.name],
      `\`${other.name}\` is also the name of the entity key, which is another column`,
      'choose another name for the column',
      true,
    );
  const key = keyOf(entity, [...path, 'entity'], problems);
  if (key !== null) mustMatch(entityKey, key, [...path, 'entity_key'], problems);
  const isFile = f.format === 'pdf' && text.type === 'bytea';
  if (text.type !== 'text' && text.type !== 'bpchar' && !isFile) {
    problems.add(
      CODES.typeMismatch,
      [...path, 'text'],
      `\`${text.name}\` is ${text.type}, but a facet reads ${f.format === 'pdf' ? 'bytea, or text in base64' : 'text'}`,
    );
  }
  return {
    entityKey: key === null ? entityKey : Object.freeze({ ...entityKey, keyDomain: key.keyDomain }),
    documentId,
    text,
    metadata,
  };
}

/** Returns the entity's key column. Passages have one key column, so any other number is reported. */
function keyOf(entity: Relation, path: Path, problems: Problems): Column | null {
  const [only, ...more] = entity.primaryKey;
  if (only !== undefined && more.length === 0) return columnOf(entity, only);
  problems.add(
    CODES.notUnique,
    path,
    `\`${entity.name}\` has ${only === undefined ? 'no primary key' : 'a primary key of several columns'}`,
    'a facet needs an entity with one key column',
  );
  return null;
}

function facetOf(
  name: string,
  f: FacetDocument,
  connector: string,
  table: Table,
  columns: FacetColumns,
  path: Path,
  problems: Problems,
): PlainFacet {
  const fields = [columns.entityKey.name, ...columns.metadata.map((c) => c.name)];
  const conflict = (at: Path, message: string, hint: string) =>
    problems.add(CODES.conflict, [...path, ...at], message, hint);
  problems.unknownIn([...path, 'scalar_indexed'], 'metadata', f.scalar_indexed, fields);
  const embeddingModel = f.embedding?.model ?? LEXICAL_MODEL;
  const approximate = f.retrieval.approximate ?? false;
  if (approximate && embeddingModel === LEXICAL_MODEL) {
    conflict(
      ['retrieval', 'approximate'],
      `\`${LEXICAL_MODEL}\` is always searched exactly`,
      'leave `approximate` out, or name an embedding model',
    );
  }
  if (f.retrieval.hybrid === true && findsByWords(embeddingModel)) {
    conflict(
      ['retrieval', 'hybrid'],
      `\`${embeddingModel}\` finds by words already`,
      'leave `hybrid` out, or name an embedding model',
    );
  }
  if (f.retrieval.language !== undefined && !findsByWords(embeddingModel) && f.retrieval.hybrid !== true) {
    conflict(
      ['retrieval', 'language'],
      `\`${embeddingModel}\` does not find by words`,
      'leave `language` out, or set `hybrid: true`',
    );
  }
  return {
    name,
    description: f.description ?? null,
    connector,
    schema: table.schema,
    table: table.table,
    entity: f.entity,
    ...columns,
    scalarIndexed: Object.freeze([...(f.scalar_indexed ?? [])]),
    format: f.format ?? 'text',
    chunking: chunkingOf(f, path, problems),
    embeddingModel,
    embedding: embeddingOf(f, embeddingModel, path, problems),
    versions: versionsOf(f, path, problems),
    labels: labelsOf(f, path, problems),
    maxTopK: f.retrieval.max_top_k,
    rerankers: Object.freeze([...(f.retrieval.rerankers ?? [])]),
    language: f.retrieval.language ?? null,
    approximate,
    dictionary: f.dictionary ?? 'key',
    exceptions: Object.freeze([...(f.exceptions ?? [])].sort()),
  };
}

function embeddingOf(f: FacetDocument, model: string, path: Path, problems: Problems): FacetEmbedding {
  const {
    endpoint,
    dimensions,
    query_prefix: query,
    passage_prefix: passage,
    half_precision,
  } = f.embedding ?? {};
  const given = { endpoint, dimensions, query_prefix: query, passage_prefix: passage, half_precision };
  const inProcess = model.startsWith('transformers:');
  for (const [name, value] of Object.entries(given)) {
    const fits = findsByWords(model) ? false : !inProcess || (name !== 'endpoint' && name !== 'dimensions');
    if (value === undefined || fits) continue;
    problems.add(
      CODES.conflict,
      [...path, 'embedding', name],
      `\`${model}\` takes no \`${name}\``,
      'leave it out',
    );
  }
  const prefixed = query !== undefined || passage !== undefined;
  return Object.freeze({
    endpoint:
      endpoint === undefined
        ? null
        : Object.freeze({ protocol: endpoint.protocol, urlEnv: endpoint.url_env }),
    dimensions: dimensions ?? null,
    prefixes: prefixed ? Object.freeze({ query: query ?? '', passage: passage ?? '' }) : null,
    half: half_precision ?? false,
  });
}

/** Default chunking for each document format. */
const BEST_CUTS = { text: 'structure', markdown: 'heading', html: 'heading', pdf: 'page' } as const;

function chunkingOf(f: FacetDocument, path: Path, problems: Problems): Facet['chunking'] {
  const maxChars = f.chunking?.max_chars ?? DEFAULT_MAX_CHARS;
  const overlapChars = f.chunking?.overlap_chars ?? Math.min(DEFAULT_OVERLAP_CHARS, Math.floor(maxChars / 4));
  if (overlapChars * 2 > maxChars) {
    const at = [...path, 'chunking', 'overlap_chars'];
    problems.add(
      CODES.conflict,
      at,
      `an overlap of ${overlapChars} is more than half of ${maxChars}`,
      'passages would mostly repeat',
    );
  }
  const by = f.chunking?.by ?? BEST_CUTS[f.format ?? 'text'];
  return Object.freeze({ maxChars, overlapChars, by });
}

function versionsOf(
  f: FacetDocument,
  path: Path,
  problems: Problems,
): ReadonlyMap<string, DeclaredFacetVersion> {
  return frozenMap(
    membersOf(f.versions).map(([name, v]): [string, DeclaredFacetVersion] => {
      const { redact = [], detectors = [], phone_countries: countries = [] } = v;
      if (countries.length > 0 && !detectors.includes('phone')) {
        const at = [...path, 'versions', name, 'phone_countries'];
        problems.add(
          CODES.conflict,
          at,
          'countries are named, and `phone` is no detector of the version',
          'add `phone`',
        );
      }
      const lists = { redact: [...redact], detectors: [...detectors], phoneCountries: [...countries] };
      for (const list of Object.values(lists)) Object.freeze(list);
      return [name, Object.freeze({ name, ...lists })];
    }),
  );
}

/** Converts facets to relations that grants can refer to, with the entity key and the metadata but without the text. */
export function facetRelations(
  facets: ReadonlyMap<string, Facet>,
  relations: RelationMap,
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
  relations: RelationMap,
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

function storeOf(facet: Facet, relations: RelationMap): FacetStore {
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
