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
import { TERM_SPACE } from '../lexical/terms.js';

/** The schema of all stores. */
export const STORES = sqlName(STORE_SCHEMA);

/** Idempotent. */
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

/** Vector types are named with the schema, so that no search path decides what they are. */
export const VECTOR_SCHEMA = 'public';
const VECTORS = sqlName(VECTOR_SCHEMA);

export interface StoreColumn {
  readonly name: string;
  /** As DDL writes it. */
  readonly type: Sql;
  readonly nullable: boolean;
}

/** Columns that a store's rows are written with, in this order. */
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

/** The tables of a facet version, empty and without their secondary indexes; older ones go. */
export function createStore(facet: Facet, version: string, layout: VectorLayout): Sql {
  const store = storeName(storeTable(facet.name, version));
  const bits = storeName(bitsTable(facet.name, version));
  const statements = [
    dropTables(facet.name, version),
    sql`create table ${store} (${definitions(storeColumns(facet, layout))}, primary key (chunk_id));`,
  ];
  // A search reads them of every passage; what is read of the best alone makes room: texts, and what operators compare.
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
 * Columns that a search for candidates reads of every passage: what policy and filters look at, and the vector's signs. A
 * table of its own, because a scan of the store would read all the texts and vectors on its way.
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

/** Fills the table of signs from the store; a WHERE clause may follow. Null where there is none. */
export function fillBits(facet: Facet, version: string, layout: VectorLayout): Sql | null {
  if (layout.kind === 'lexical') return null;
  const names = bitsColumns(facet, layout).map((c) => c.name);
  const signs = sql`${VECTORS}.binary_quantize(embedding)::bit(${sqlNumber(layout.dimensions)})`;
  const values = names.map((name) => (name === 'bits' ? signs : sqlName(name)));
  const [store, bits] = [storeTable(facet.name, version), bitsTable(facet.name, version)];
  return sql`insert into ${storeName(bits)} (${sqlJoin(names.map(sqlName))}) select ${sqlJoin(values)} from ${storeName(store)}`;
}

/** Makes the table of words that a lexical store's passages hold; null where there is none. */
export function fillWords(facet: string, version: string, layout: VectorLayout): Sql | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return sql`delete from ${words}; insert into ${words} ${wordsOf(facet, version, sql``, 1)}`;
}

/**
 * Adds the passages of the documents `$1` (text[]) to the table of words, or takes them away; null where there is none.
 *
 * INVARIANT: what is counted is what the store holds, at the end of each transaction that changes it.
 */
export function countWords(facet: string, version: string, layout: VectorLayout, by: 1 | -1): Sql | null {
  if (layout.kind !== 'lexical') return null;
  const words = storeName(wordsTable(facet, version));
  return sql`insert into ${words} as w ${wordsOf(facet, version, sql` where doc_id = any($1::text[])`, by)}
on conflict (term) do update set passages = w.passages + excluded.passages`;
}

/** Forgets the words of passages that are gone; null where there are none. */
export function forgetWords(facet: string, version: string, layout: VectorLayout): Sql | null {
  return layout.kind === 'lexical'
    ? sql`delete from ${storeName(wordsTable(facet, version))} where passages = 0`
    : null;
}

/** The words of passages, and by how many of these each is held: of word 0, how many there are. */
function wordsOf(facet: string, version: string, where: Sql, by: 1 | -1): Sql {
  const store = storeName(storeTable(facet, version));
  return sql`(term, passages) select h.term, ${sqlNumber(by)} * pg_catalog.count(*)
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

/** Made when the first build has its rows: loading into them would cost far more. */
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
export function dropTables(facet: string, version: string): Sql {
  const tables = [derivedTable, bitsTable, wordsTable, storeTable].map((name) =>
    storeName(name(facet, version)),
  );
  return sql`drop table if exists ${sqlJoin(tables)};`;
}

/** Schema and table, quoted. */
export function storeName(table: string): Sql {
  return sqlTable({ schema: STORE_SCHEMA, table });
}

const BLANK = sql` `;
