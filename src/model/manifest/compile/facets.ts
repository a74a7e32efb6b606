import { type Column, columnOf, type Relation } from 'osl-compiler';
import { checkArguments, InvalidArgument } from '../../facets/arguments.js';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { FacetDocument, ManifestDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Connector, Derived, Facet, FacetVersion, Table } from '../manifest.js';
import { columnsOf, declared } from './columns.js';
import { sourceOf } from './connectors.js';
import { entityNamed, mustMatch } from './links.js';
import { membersOf, type Problems } from './scope.js';

const DEFAULT_MODEL = 'lexical-v1';
const DEFAULT_MAX_CHARS = 1200;
const DEFAULT_OVERLAP_CHARS = 150;

export function facetsOf(
  document: ManifestDocument,
  connectors: ReadonlyMap<string, Connector>,
  relations: ReadonlyMap<string, Relation>,
  derived: ReadonlyMap<string, readonly Derived[]>,
  problems: Problems,
): ReadonlyMap<string, Facet> {
  const out: [string, Facet][] = [];
  for (const [name, f] of membersOf(document.facets)) {
    const path: Path = ['facets', name];
    const source = sourceOf(f.source, [...path, 'source'], connectors, problems);
    const entity = entityNamed(f.entity, [...path, 'entity'], relations, problems);
    if (source === null || entity === null) continue;
    const columns = facetColumns(f, path, source.table, entity, problems);
    if (columns !== null)
      out.push([
        name,
        Object.freeze({
          ...facetOf(name, f, source.connector, source.table, columns, path, problems),
          derived: Object.freeze((derived.get(f.entity) ?? []).filter((d) => d.facet === name)),
        }),
      ]);
  }
  return frozenMap(out);
}

/** Checked as the operators check them. */
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
    const column = declared(f[key], [...path, key], table, problems);
    if (column === null) return null;
    const { name, type, sensitivity, nullable } = column;
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
  const key = keyOf(entity, [...path, 'entity'], problems);
  if (key !== null) mustMatch(entityKey, key, [...path, 'entity_key'], problems);
  if (text.type !== 'text' && text.type !== 'bpchar') {
    problems.add(
      CODES.typeMismatch,
      [...path, 'text'],
      `\`${text.name}\` is ${text.type}, but a facet reads text`,
    );
  }
  return {
    entityKey: key === null ? entityKey : Object.freeze({ ...entityKey, keyDomain: key.keyDomain }),
    documentId,
    text,
    metadata,
  };
}

/** A passage carries one key column, so that its entity has one. */
function keyOf(entity: Relation, path: Path, problems: Problems): Column | null {
  const [only, ...more] = entity.primaryKey;
  if (only !== undefined && more.length === 0) return columnOf(entity, only);
  problems.add(
    CODES.notUnique,
    path,
    `\`${entity.name}\` has a primary key of several columns`,
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
): Omit<Facet, 'derived'> {
  const fields = [columns.entityKey.name, ...columns.metadata.map((c) => c.name)];
  for (const [i, field] of (f.scalar_indexed ?? []).entries()) {
    if (!fields.includes(field)) problems.unknown([...path, 'scalar_indexed', i], 'metadata', field, fields);
  }
  const embeddingModel = f.embedding?.model ?? DEFAULT_MODEL;
  const approximate = f.retrieval.approximate ?? false;
  if (approximate && embeddingModel === DEFAULT_MODEL) {
    problems.add(
      CODES.conflict,
      [...path, 'retrieval', 'approximate'],
      `\`${DEFAULT_MODEL}\` is always searched exactly`,
      'leave `approximate` out, or name an embedding model',
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
    chunking: chunkingOf(f, path, problems),
    embeddingModel,
    versions: versionsOf(f),
    labels: labelsOf(f, path, problems),
    maxTopK: f.retrieval.max_top_k,
    approximate,
    dictionary: f.dictionary ?? 'key',
  };
}

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
  return Object.freeze({ maxChars, overlapChars });
}

function versionsOf(f: FacetDocument): ReadonlyMap<string, FacetVersion> {
  return frozenMap(
    membersOf(f.versions).map(([name, v]): [string, FacetVersion] => {
      const redact = Object.freeze([...(v.redact ?? [])]);
      return [name, Object.freeze({ name, redact, detectors: Object.freeze([...(v.detectors ?? [])]) })];
    }),
  );
}
