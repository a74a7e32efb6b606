import { type Sql, sql, sqlJoin, sqlName, sqlNumber, sqlTable, sqlType } from '../../base/sql.js';
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
import { TERM_SPACE } from '../lexical/bm25.js';

export const STORES = sqlName(STORE_SCHEMA);

/** Creates the control tables; idempotent. */
export const CREATE_CONTROL = sql`
create table if not exists ${STORES}.facet (
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
alter table ${STORES}.facet add column if not exists average_length float8;
create table if not exists ${STORES}.document (
  facet text not null,
  version text not null,
  doc_id text not null,
  content_hash text not null,
  served_hash text not null,
  chunks int4 not null,
  primary key (facet, version, doc_id),
  foreign key (facet, version) references ${STORES}.facet on delete cascade
);
`;

/** Schema of the vector types, which are always qualified, so that they do not depend on the search path. */
export const VECTOR_SCHEMA = 'public';
const VECTORS = sqlName(VECTOR_SCHEMA);

export interface StoreColumn {
  readonly name: string;
  readonly type: Sql;
  readonly nullable: boolean;
}

/** Columns of a store's rows, in the order they are written. */
export function storeColumns(facet: Facet, layout: VectorLayout): readonly StoreColumn[] {
  return [
    column('chunk_id', TEXT_BY_BYTES),
    column('doc_id', TEXT_BY_BYTES),
    column('source', sqlType('text')),
    column('entity_key', sqlType(facet.entityKey.type), true),
    column('ordinal', sqlType('int4')),
    column('start_char', sqlType('int4')),
    column('end_char', sqlType('int4')),
    column('text', sqlType('text')),
    column('sha256', sqlType('text')),
    ...facet.metadata.map((m) => column(metadataColumn(m.name), sqlType(m.type), true)),
    column('redacted_fields', sqlType('text[]')),
    ...vectorColumns(layout),
  ];
}

function vectorColumns(layout: VectorLayout): readonly StoreColumn[] {
  const type = (name: string, dimensions: number): Sql =>
    sql`${VECTORS}.${sqlName(name)}(${sqlNumber(dimensions)})`;
  switch (layout.kind) {
    case 'lexical':
      return [
        column('length', sqlType('int4')),
        column('terms', sqlType('int4[]')),
        column('lex', type('sparsevec', TERM_SPACE)),
        column('dense', type(layout.type, layout.dimensions)),
      ];
    case 'dense':
      return [column('embedding', type(layout.type, layout.dimensions))];
  }
}

const TEXT_BY_BYTES = sql`text collate "C"`;

function column(name: string, type: Sql, nullable = false): StoreColumn {
  return { name, type, nullable };
}

/** Creates the tables of a facet version without secondary indexes, replacing older tables. */
export function createStore(facet: Facet, version: string, layout: VectorLayout): Sql {
  const store = storeName(storeTable(facet.name, version));
  const bits = storeName(bitsTable(facet.name, version));
  const statements = [
    dropTables(facet.name, version),
    sql`create table ${store} (${definitions(storeColumns(facet, layout))}, primary key (chunk_id));`,
  ];
  // A search reads these columns of every passage, so they stay inline. Texts and operator vectors, which are read only
  // for the best passages, are stored out of line.
  if (layout.kind === 'lexical') {
    const words = storeName(wordsTable(facet.name, version));
    statements.push(
      sql`alter table ${store} alter column terms set storage main, alter column lex set storage main;`,
      sql`create table ${words} (term int4 primary key, passages int8 not null);`,
    );
  }
  if (layout.kind === 'dense')
    statements.push(sql`create table ${bits} (${definitions(bitsColumns(facet, layout))});`);
  if (facet.derived.length > 0) statements.push(createDerived(facet, version));
  return sqlJoin(statements, BLANK);
}

function definitions(columns: readonly StoreColumn[]): Sql {
  return sqlJoin(
    columns.map(({ name, type, nullable }) =>
      nullable ? sql`${sqlName(name)} ${type}` : sql`${sqlName(name)} ${type} not null`,
    ),
  );
}

/**
 * Columns that a candidate search reads for every passage: those for policy and filters, and the signs of the vector.
 * They are in a separate table, because a scan of the store would also read texts and vectors.
 */
function bitsColumns(facet: Facet, { dimensions }: DenseLayout): readonly StoreColumn[] {
  return [
    column('chunk_id', TEXT_BY_BYTES),
    column('doc_id', TEXT_BY_BYTES),
    column('entity_key', sqlType(facet.entityKey.type), true),
    ...facet.metadata.map((m) => column(metadataColumn(m.name), sqlType(m.type), true)),
    column('bits', sql`bit(${sqlNumber(dimensions)})`),
  ];
}

/** Statement that fills the table of sign bits from the store; a WHERE clause may follow. Null for a lexical store. */
export function fillBits(facet: Facet, version: string, layout: VectorLayout): Sql | null {
  if (layout.kind === 'lexical') return null;
  const names = bitsColumns(facet, layout).map((c) => c.name);
  const signs = sql`${VECTORS}.binary_quantize(embedding)::bit(${sqlNumber(layout.dimensions)})`;
  const values = names.map((name) => (name === 'bits' ? signs : sqlName(name)));
  const [store, bits] = [storeTable(facet.name, version), bitsTable(facet.name, version)];
  return sql`insert into ${storeName(bits)} (${sqlJoin(names.map(sqlName))}) select ${sqlJoin(values)} from ${storeName(store)}`;
}

/** Statement that fills the word counts of a lexical store; null for other stores. */
export function fillWords(facet: string, version: string, layout: VectorLayout): Sql | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return sql`delete from ${words}; insert into ${words} ${wordsOf(facet, version, sql``, 1)}`;
}

/**
 * Returns the statement that adds the passages of the documents `$1` (text[]) to the word counts, or subtracts them if
 * `by` is -1; null if the store is not lexical.
 *
 * INVARIANT: after each transaction that changes the store, the counts match its content.
 */
export function countWords(facet: string, version: string, layout: VectorLayout, by: 1 | -1): Sql | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return sql`insert into ${words} as w ${wordsOf(facet, version, sql` where doc_id = any($1::text[])`, by)}
on conflict (term) do update set passages = w.passages + excluded.passages`;
}

/** Statement that removes words without passages; null if the store is not lexical. */
export function forgetWords(facet: string, version: string, layout: VectorLayout): Sql | null {
  return layout.kind === 'lexical'
    ? sql`delete from ${storeName(wordsTable(facet, version))} where passages = 0`
    : null;
}

/** SQL that counts the passages that contain each word, times `by`; word 0 counts all passages. */
function wordsOf(facet: string, version: string, where: Sql, by: 1 | -1): Sql {
  const store = storeName(storeTable(facet, version));
  return sql`(term, passages) select h.term, ${sqlNumber(by)} * pg_catalog.count(*)
  from (select pg_catalog.unnest(terms) as term from ${store}${where}
        union all select 0 from ${store}${where}) as h group by h.term`;
}

/** Columns of derived attributes, in the order in which they are written. */
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
 * Creates the table of attributes derived from a store's passages, with one row per supporting passage.
 *
 * INVARIANT: its rows refer only to passages in the store: if a passage is deleted, the foreign key deletes its rows
 * too.
 */
function createDerived(facet: Facet, version: string): Sql {
  const derived = storeName(derivedTable(facet.name, version));
  const store = storeName(storeTable(facet.name, version));
  return sql`create table ${derived} (
  attribute text collate "C" not null,
  doc_id text collate "C" not null,
  entity_key ${sqlType(facet.entityKey.type)},
  value jsonb not null,
  score float8 not null,
  support int4 not null,
  chunk_id text collate "C" not null references ${store} on delete cascade,
  primary key (chunk_id, attribute)
);
create index on ${derived} (entity_key);`;
}

/** Creates the indexes of a store. Run after the first build has loaded the rows, which is far cheaper. */
export function createIndexes(facet: Facet, version: string, layout: VectorLayout): Sql {
  const scalar = new Set(['doc_id', 'entity_key']);
  for (const name of facet.scalarIndexed) {
    if (name !== facet.entityKey.name) scalar.add(metadataColumn(name));
  }
  const store = storeName(storeTable(facet.name, version));
  const onEach = (table: Sql): Sql[] =>
    [...scalar].map((name) => sql`create index on ${table} (${sqlName(name)});`);
  const statements = onEach(store);
  switch (layout.kind) {
    case 'lexical':
      statements.push(sql`create index on ${store} using gin (terms);`);
      break;
    case 'dense': {
      statements.push(...onEach(storeName(bitsTable(facet.name, version))));
      const operators = sql`${VECTORS}.${sqlName(`${layout.type}_ip_ops`)}`;
      if (facet.approximate)
        statements.push(sql`create index on ${store} using hnsw (embedding ${operators});`);
      break;
    }
  }
  return sqlJoin(statements, BLANK);
}

/** Maximum number of dimensions of a vector in an approximate index. */
export const WIDEST_INDEXED: Readonly<Record<DenseLayout['type'], number>> = {
  vector: 2_000,
  halfvec: 4_000,
};

/** The tables that hold a facet version's passages. */
export function storeTables(facet: string, version: string, layout: VectorLayout): readonly string[] {
  const store = storeTable(facet, version);
  return layout.kind === 'lexical' ? [store] : [store, bitsTable(facet, version)];
}

export function dropTables(facet: string, version: string): Sql {
  const tables = [derivedTable, bitsTable, wordsTable, storeTable].map((name) =>
    storeName(name(facet, version)),
  );
  return sql`drop table if exists ${sqlJoin(tables)};`;
}

export function storeName(table: string): Sql {
  return sqlTable({ schema: STORE_SCHEMA, table });
}

const BLANK = sql` `;
