import type { Facet } from '../../manifest/index.js';
import type { VectorLayout } from '../embed/embedder.js';
import { TERM_SPACE } from '../lexical/terms.js';
import { metadataColumn, quoted, STORE_SCHEMA } from './names.js';

/** Idempotent; the advisory lock is because two processes may come at once. */
export const CREATE_CONTROL = `
create schema if not exists ${STORE_SCHEMA};
create table if not exists ${STORE_SCHEMA}.facet (
  facet text not null,
  version text not null,
  table_name text not null unique,
  fingerprint text not null,
  settings text not null,
  pseudonym_key text not null,
  run text not null,
  epoch int8 not null default 0,
  state text not null check (state in ('building', 'ready')),
  documents int8 not null default 0,
  chunks int8 not null default 0,
  indexed_at timestamptz,
  primary key (facet, version)
);
create table if not exists ${STORE_SCHEMA}.document (
  facet text not null,
  version text not null,
  doc_id text not null,
  content_hash text not null,
  served_hash text not null,
  chunks int4 not null,
  primary key (facet, version, doc_id),
  foreign key (facet, version) references ${STORE_SCHEMA}.facet on delete cascade
);
`;

/** Vector types are named with the schema, so that no search path decides what they are. */
export const VECTOR_SCHEMA = 'public';

export interface StoreColumn {
  readonly name: string;
  /** As DDL writes it. */
  readonly type: string;
  readonly nullable: boolean;
}

/** Columns that a store's rows are written with, in this order; `bits` computes itself. */
export function storeColumns(facet: Facet, layout: VectorLayout): readonly StoreColumn[] {
  return [
    column('chunk_id', 'text collate "C"'),
    column('doc_id', 'text collate "C"'),
    column('source', 'text'),
    column('entity_key', facet.entityKey.type, true),
    column('ordinal', 'int4'),
    column('start_char', 'int4'),
    column('end_char', 'int4'),
    column('text', 'text'),
    column('sha256', 'text'),
    ...facet.metadata.map((m) => column(metadataColumn(m.name), m.type, true)),
    column('redacted_fields', 'text[]'),
    ...vectorColumns(layout),
  ];
}

function vectorColumns(layout: VectorLayout): readonly StoreColumn[] {
  const type = (name: string, dimensions: number): string => `${VECTOR_SCHEMA}.${name}(${dimensions})`;
  switch (layout.kind) {
    case 'lexical':
      return [
        column('length', 'int4'),
        column('terms', 'int4[]'),
        column('lex', type('sparsevec', TERM_SPACE)),
        column('dense', type('vector', layout.dimensions)),
      ];
    case 'dense':
      return [column('embedding', type(layout.type, layout.dimensions))];
  }
}

function column(name: string, type: string, nullable = false): StoreColumn {
  return { name, type, nullable };
}

/** The store's table, empty and without its secondary indexes. */
export function createStore(facet: Facet, table: string, layout: VectorLayout): string {
  const columns = storeColumns(facet, layout).map(
    (c) => `  ${quoted(c.name)} ${c.type}${c.nullable ? '' : ' not null'}`,
  );
  if (layout.kind === 'dense' && layout.bits) {
    const bits = `${VECTOR_SCHEMA}.binary_quantize(embedding)::bit(${layout.dimensions})`;
    columns.push(`  bits bit(${layout.dimensions}) not null generated always as (${bits}) stored`);
  }
  return `create table ${storeName(table)} (\n${columns.join(',\n')},\n  primary key (chunk_id)\n);`;
}

/** Made when the first build has its rows: loading into them would cost far more. */
export function createIndexes(facet: Facet, table: string, layout: VectorLayout): string {
  const scalar = new Set(['doc_id', 'entity_key']);
  for (const name of facet.scalarIndexed) {
    if (name !== facet.entityKey.name) scalar.add(metadataColumn(name));
  }
  const statements = [...scalar].map((name) => `create index on ${storeName(table)} (${quoted(name)});`);
  if (layout.kind === 'lexical') {
    statements.push(`create index on ${storeName(table)} using gin (terms);`);
  } else if (facet.approximate) {
    const operators = `${VECTOR_SCHEMA}.${layout.type}_ip_ops`;
    statements.push(`create index on ${storeName(table)} using hnsw (embedding ${operators});`);
  }
  return statements.join('\n');
}

/** Schema and table, quoted. */
export function storeName(table: string): string {
  return `${STORE_SCHEMA}.${quoted(table)}`;
}
