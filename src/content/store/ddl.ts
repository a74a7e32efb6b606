import { quoteIdentifier } from 'osl-compiler';
import {
  bitsTable,
  derivedTable,
  metadataColumn,
  STORE_SCHEMA,
  storeTable,
  wordsTable,
} from '../../model/facets/store-names.js';
import type { Facet } from '../../model/manifest/index.js';
import type { DenseLayout, VectorLayout } from '../embed/embedder.js';
import { TERM_SPACE } from '../lexical/terms.js';

/** Idempotent; the advisory lock is because two processes may come at once. */
export const CREATE_CONTROL = `
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
  average_length float8,
  primary key (facet, version)
);
alter table ${STORE_SCHEMA}.facet add column if not exists average_length float8;
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

/** Columns that a store's rows are written with, in this order. */
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
        column('dense', type(layout.type, layout.dimensions)),
      ];
    case 'dense':
      return [column('embedding', type(layout.type, layout.dimensions))];
  }
}

function column(name: string, type: string, nullable = false): StoreColumn {
  return { name, type, nullable };
}

/** The tables of a facet version, empty and without their secondary indexes; older ones go. */
export function createStore(facet: Facet, version: string, layout: VectorLayout): string {
  const store = storeName(storeTable(facet.name, version));
  const bits = storeName(bitsTable(facet.name, version));
  const statements = [
    dropTables(facet.name, version),
    `create table ${store} (\n${definitions(storeColumns(facet, layout))},\n  primary key (chunk_id)\n);`,
  ];
  // A search reads them of every passage; what is read of the best alone makes room: texts, and what operators compare.
  if (layout.kind === 'lexical') {
    const words = storeName(wordsTable(facet.name, version));
    statements.push(
      `alter table ${store} alter column terms set storage main, alter column lex set storage main;`,
      `create table ${words} (term int4 primary key, passages int8 not null);`,
    );
  }
  if (layout.kind === 'dense')
    statements.push(`create table ${bits} (\n${definitions(bitsColumns(facet, layout))}\n);`);
  if (facet.derived.length > 0) statements.push(createDerived(facet, version));
  return statements.join('\n');
}

function definitions(columns: readonly StoreColumn[]): string {
  return columns
    .map((c) => `  ${quoteIdentifier(c.name)} ${c.type}${c.nullable ? '' : ' not null'}`)
    .join(',\n');
}

/**
 * What a search for candidates reads of every passage: what policy and filters look at, and the vector's signs. A
 * table of its own, because a scan of the store would read all the texts and vectors on its way.
 */
function bitsColumns(facet: Facet, { dimensions }: DenseLayout): readonly StoreColumn[] {
  return [
    column('chunk_id', 'text collate "C"'),
    column('doc_id', 'text collate "C"'),
    column('entity_key', facet.entityKey.type, true),
    ...facet.metadata.map((m) => column(metadataColumn(m.name), m.type, true)),
    column('bits', `bit(${dimensions})`),
  ];
}

/** Fills the table of signs from the store; a WHERE clause may follow. Null where there is none. */
export function fillBits(facet: Facet, version: string, layout: VectorLayout): string | null {
  if (layout.kind === 'lexical') return null;
  const names = bitsColumns(facet, layout).map((c) => quoteIdentifier(c.name));
  const signs = `${VECTOR_SCHEMA}.binary_quantize(embedding)::bit(${layout.dimensions})`;
  const values = names.map((name) => (name === quoteIdentifier('bits') ? signs : name));
  const [store, bits] = [storeTable(facet.name, version), bitsTable(facet.name, version)];
  return `insert into ${storeName(bits)} (${names.join(', ')}) select ${values.join(', ')} from ${storeName(store)}`;
}

/** Makes the table of words that a lexical store's passages hold; null where there is none. */
export function fillWords(facet: string, version: string, layout: VectorLayout): string | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return `delete from ${words}; insert into ${words} ${wordsOf(facet, version, '', 1)}`;
}

/**
 * Adds the passages of the documents `$1` (text[]) to the table of words, or takes them away; null where there is none.
 *
 * INVARIANT: what is counted is what the store holds, at the end of each transaction that changes it.
 */
export function countWords(facet: string, version: string, layout: VectorLayout, by: 1 | -1): string | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return `insert into ${words} as w ${wordsOf(facet, version, ' where doc_id = any($1::text[])', by)}
on conflict (term) do update set passages = w.passages + excluded.passages`;
}

/** Forgets the words of passages that are gone; null where there are none. */
export function forgetWords(facet: string, version: string, layout: VectorLayout): string | null {
  return layout.kind === 'lexical'
    ? `delete from ${storeName(wordsTable(facet, version))} where passages = 0`
    : null;
}

/** The words of passages, and by how many of these each is held: of word 0, how many there are. */
function wordsOf(facet: string, version: string, where: string, by: 1 | -1): string {
  const store = storeName(storeTable(facet, version));
  return `(term, passages) select h.term, ${by} * pg_catalog.count(*)
  from (select pg_catalog.unnest(terms) as term from ${store}${where}
        union all select 0 from ${store}${where}) as h group by h.term`;
}

/** Columns of what is derived, in the order in which rows are written. */
export const DERIVED_COLUMNS = [
  'attribute',
  'doc_id',
  'entity_key',
  'value',
  'score',
  'support',
  'chunk_id',
] as const;

/**
 * The table of what is derived from a store's passages, a row for each passage that a value rests on.
 *
 * INVARIANT: it holds nothing of a passage that is not in the store: the foreign key takes its rows away with it.
 */
function createDerived(facet: Facet, version: string): string {
  const derived = storeName(derivedTable(facet.name, version));
  const store = storeName(storeTable(facet.name, version));
  return `create table ${derived} (
  attribute text collate "C" not null,
  doc_id text collate "C" not null,
  entity_key ${facet.entityKey.type},
  value jsonb not null,
  score float8 not null,
  support int4 not null,
  chunk_id text collate "C" not null references ${store} on delete cascade,
  primary key (chunk_id, attribute)
);
create index on ${derived} (entity_key);`;
}

/** Made when the first build has its rows: loading into them would cost far more. */
export function createIndexes(facet: Facet, version: string, layout: VectorLayout): string {
  const scalar = new Set(['doc_id', 'entity_key']);
  for (const name of facet.scalarIndexed) {
    if (name !== facet.entityKey.name) scalar.add(metadataColumn(name));
  }
  const store = storeName(storeTable(facet.name, version));
  const onEach = (table: string): string[] =>
    [...scalar].map((name) => `create index on ${table} (${quoteIdentifier(name)});`);
  const statements = onEach(store);
  switch (layout.kind) {
    case 'lexical':
      statements.push(`create index on ${store} using gin (terms);`);
      break;
    case 'dense': {
      statements.push(...onEach(storeName(bitsTable(facet.name, version))));
      const operators = `${VECTOR_SCHEMA}.${layout.type}_ip_ops`;
      if (facet.approximate) statements.push(`create index on ${store} using hnsw (embedding ${operators});`);
      break;
    }
  }
  return statements.join('\n');
}

/** The widest vectors that an approximate index takes. */
export const WIDEST_INDEXED: Readonly<Record<DenseLayout['type'], number>> = {
  vector: 2_000,
  halfvec: 4_000,
};

/** The tables that hold a facet version's passages. */
export function storeTables(facet: string, version: string, layout: VectorLayout): readonly string[] {
  const store = storeTable(facet, version);
  return layout.kind === 'lexical' ? [store] : [store, bitsTable(facet, version)];
}

/** Removes the tables of a facet version, where they are there. */
export function dropTables(facet: string, version: string): string {
  const tables = [derivedTable, bitsTable, wordsTable, storeTable].map((name) =>
    storeName(name(facet, version)),
  );
  return `drop table if exists ${tables.join(', ')};`;
}

/** Schema and table, quoted. */
export function storeName(table: string): string {
  return `${STORE_SCHEMA}.${quoteIdentifier(table)}`;
}
