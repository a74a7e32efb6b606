import { generatedSql, sql } from '../../src/base/sql.js';
import { DEFAULT_MIN_LENGTH, type Embedder, prepareContent } from '../../src/content/index.js';
import { dropStore, settingsHash } from '../../src/content/store/control.js';
import {
  createIndexes,
  fillBits,
  storeColumns,
  storeName,
  storeTables,
} from '../../src/content/store/ddl.js';
import { beginRun } from '../../src/content/store/run.js';
import type { SystemEngine } from '../../src/engine/index.js';
import { STORE_SCHEMA, storeTable } from '../../src/model/facets/store-names.js';
import { type Facet, parseManifest } from '../../src/model/manifest/index.js';
import { CHUNKS_PER_ENTITY, type Corpus, type SyntheticChunk } from './corpus.js';
import { manifestYaml } from './grants.js';

export const STORE = storeName(storeTable('chunk', 'raw'));

/** Duration of each part of the load in seconds. */
export interface LoadTimes {
  readonly rows: number;
  readonly indexes: number;
}

function facetOf(approximate: boolean): Facet {
  const facet = parseManifest(manifestYaml(approximate), 'bench.yaml').facets.get('chunk');
  if (facet === undefined) throw new Error('the bench has one facet');
  return facet;
}

function versionOf(facet: Facet) {
  const version = facet.versions.get('raw');
  if (version === undefined) throw new Error('the facet has one version');
  return version;
}

/** Creates the table of the entities to which `count` passages belong. */
export async function makeEntities(system: SystemEngine, count: number): Promise<void> {
  await system.script(
    generatedSql(`
    create schema if not exists bench;
    drop table if exists bench.entity;
    create table bench.entity (id int4 primary key);
    insert into bench.entity select generate_series(0, ${Math.ceil(count / CHUNKS_PER_ENTITY) - 1});
    analyze bench.entity;
  `),
  );
}

/**
 * Fills the product's own store with a synthetic corpus. Only reading documents is skipped: rows are copied straight
 * into the store, and signatures and indexes are created as the indexer does.
 */
export async function loadStore(
  system: SystemEngine,
  corpus: Corpus,
  embedder: Embedder,
  count: number,
): Promise<LoadTimes> {
  const facet = facetOf(true);
  const version = versionOf(facet);
  await prepareContent(system);
  // Drop a store of another size, because a store that is being served would be kept.
  await dropStore(system, facet.name, version.name);
  await makeEntities(system, count);
  const run = await beginRun(system, facet, version, embedder, 'loading', 1);
  const columns = storeColumns(facet, embedder.layout).map((c) => c.name);
  const start = performance.now();
  await system.copyIn({ schema: STORE_SCHEMA, table: run.table, columns }, storeRows(corpus.chunks(count)));
  await system.script(fillBits(facet, version.name, embedder.layout) ?? sql``);
  const loaded = performance.now();
  await system.script(createIndexes(facet, version.name, embedder.layout));
  const indexed = performance.now();
  await settleStore(system, facet, embedder, count);
  return { rows: (loaded - start) / 1_000, indexes: (indexed - loaded) / 1_000 };
}

/** Marks the store as complete and makes it readable. */
export async function settleStore(
  system: SystemEngine,
  facet: Facet,
  embedder: Embedder,
  count: number,
): Promise<void> {
  for (const table of storeTables(facet.name, 'raw', embedder.layout))
    await system.script(generatedSql(`vacuum analyze ${storeName(table)}`));
  await system.query(
    generatedSql(
      `update ${STORE_SCHEMA}.facet set state = 'ready', settings = $2, documents = $1, chunks = $1 where facet = $3`,
    ),
    [String(count), settingsHash(facet, versionOf(facet), DEFAULT_MIN_LENGTH), facet.name],
  );
  await system.grantRead(STORE_SCHEMA);
  await system.grantRead('bench');
}

/** Size in bytes of a store's tables and of their indexes. */
export async function storeBytes(
  system: SystemEngine,
  facet: string,
  embedder: Embedder,
): Promise<{ readonly rows: number; readonly indexes: number }> {
  const names = storeTables(facet, 'raw', embedder.layout).map(storeName);
  const [row] = await system.query(
    sql`select sum(pg_table_size(t::regclass)) as rows, sum(pg_indexes_size(t::regclass)) as indexes from unnest($1::text[]) as t`,
    [names],
  );
  return { rows: Number(row?.['rows']), indexes: Number(row?.['indexes']) };
}

/** Serves the store under either facet: they differ only in whether its index may be used, not in its content. */
export async function serveAs(system: SystemEngine, approximate: boolean): Promise<void> {
  const facet = facetOf(approximate);
  const settings = settingsHash(facet, versionOf(facet), DEFAULT_MIN_LENGTH);
  await system.query(generatedSql(`update ${STORE_SCHEMA}.facet set settings = $1 where facet = $2`), [
    settings,
    facet.name,
  ]);
}

const TEXT = 'A chunk of a thousand letters, as the default chunking makes them. '.repeat(15);

/** Rows of the store, in the order of its columns. */
function* storeRows(chunks: Iterable<SyntheticChunk>): Generator<readonly (string | null)[]> {
  for (const { id, shard, band, vector } of chunks) {
    const document = `d${String(id).padStart(8, '0')}`;
    const entity = String(Math.floor(id / CHUNKS_PER_ENTITY));
    const place = [chunkIdOf(id), document, 'main', entity, '0', '0', `${TEXT.length}`];
    yield [...place, `${TEXT}${id}`, document.repeat(7), `${shard}`, `${band}`, '{}', vector];
  }
}

function chunkIdOf(id: number): string {
  return `d${String(id).padStart(8, '0')}#00000`;
}
