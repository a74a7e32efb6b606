import { createHash } from 'node:crypto';
import { toSql } from 'pgvector';
import { sql, sqlName, sqlText } from '../../base/sql.js';
import type { SystemEngine, SystemQueries } from '../../engine/index.js';
import { findsByWords } from '../../model/facets/retrieval-options.js';
import {
  bitsTable,
  derivedTable,
  STORE_SCHEMA,
  storeTable,
  wordsTable,
} from '../../model/facets/store-names.js';
import type { DeclaredFacetVersion, Facet } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import type { Embedder } from '../embed/embedder.js';
import { dictionaryOf, readingOf } from '../lexical/languages/word-rules.js';
import { CREATE_CONTROL, dropTables, STORES, storeName, VECTOR_SCHEMA } from './ddl.js';

/** Version of the format of stores, incremented with every change; stores in an older format are rebuilt. */
const FORMAT = 5;

/** Minimum length, after folding, of declared values to search for; shorter values occur in every text. */
export const DEFAULT_MIN_LENGTH = 3;

/** State of a store as recorded in the database. */
export interface StoreState {
  readonly facet: string;
  readonly version: string;
  /** Name of the store's table in schema `osl_content`. */
  readonly table: string;
  readonly fingerprint: string;
  readonly settings: string;
  /** Increases with every change to a row; an int8 as decimal text. */
  readonly epoch: string;
  readonly state: 'building' | 'ready';
  readonly documents: number;
  readonly chunks: number;
  /** Time of the last read of the source, formatted by `INDEXED_AT`; null during the first build. */
  readonly indexedAt: string | null;
}

/**
 * Start of the latest regular `osl index` round that read the source: RFC 3339, in UTC, to the second. Rounds caused
 * by a changed row do not count: see decision 83.
 */
const INDEXED_AT = sql`pg_catalog.to_char(indexed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;

/** Version of redaction's word matching; incremented with every change to `redact/`. */
const FOLDING = 4;

/**
 * Two hashes of everything that determines a store's rows except the embedder, separated by a dot: 24 hex digits for
 * the source, its columns and the redaction rules, and 8 for the way documents and words are split.
 */
export function settingsHash(facet: Facet, version: DeclaredFacetVersion, minLength: number): string {
  const column = (c: Facet['text']): unknown[] => [c.name, c.physical, c.type, c.sensitivity];
  const language = findsByWords(facet.embeddingModel) ? facet.language : null;
  const rules = {
    format: FORMAT,
    source: [facet.connector, facet.schema, facet.table],
    columns: [facet.entityKey, facet.documentId, facet.text, ...facet.metadata].map(column),
    scalarIndexed: facet.scalarIndexed,
    approximate: facet.approximate,
    redact: version.redact,
    detectors: version.detectors,
    phoneCountries: version.phoneCountries,
    folding: FOLDING,
    derived: facet.derived,
    minLength,
    dictionary: facet.dictionary,
    exceptions: facet.exceptions,
    textFormat: facet.format,
    // Undefined if there is no language, so that stores built before languages existed stay valid.
    reading: readingOf(language),
  };
  const dictionary = dictionaryOf(language);
  const cutting = dictionary === undefined ? facet.chunking : [facet.chunking, dictionary];
  return `${hashOf(rules).slice(0, 24)}.${hashOf(cutting).slice(0, 8)}`;
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}

/** True if two settings hashes have equal rules; documents may be cut differently. */
function haveSameRules(a: string, b: string): boolean {
  return a.split('.')[0] === b.split('.')[0];
}

const EXTENSION = sql`select n.nspname as schema from pg_catalog.pg_extension e
  join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'`;

/**
 * Creates the extension, the schema and the control tables if they are missing.
 *
 * @throws ContentError `vectorExtension` if the extension is not available or is in another schema
 */
export async function prepareContent(system: SystemQueries): Promise<void> {
  let [extension] = await system.query(EXTENSION);
  if (extension === undefined) {
    await system
      .script(sql`create extension if not exists vector schema ${sqlName(VECTOR_SCHEMA)}`)
      .catch(() => {
        throw new ContentError(
          'vectorExtension',
          'the extension vector cannot be created',
          `install pgvector 0.8.4 or newer on the server, and as a superuser run \`create extension vector schema ${VECTOR_SCHEMA}\` in this database`,
        );
      });
    [extension] = await system.query(EXTENSION);
  }
  if (extension?.['schema'] !== VECTOR_SCHEMA) {
    throw new ContentError(
      'vectorExtension',
      `the extension vector lies in schema ${String(extension?.['schema'])}`,
      `move it: \`alter extension vector set schema ${VECTOR_SCHEMA}\``,
    );
  }
  const [there] = await system.query(
    sql`select exists (select from pg_catalog.pg_attribute
                     where attrelid = pg_catalog.to_regclass(${sqlText(`${STORE_SCHEMA}.facet`)}) and attname = 'average_length') as y`,
  );
  if (there?.['y'] === true) return;
  const [schema] = await system.query(sql`select pg_catalog.to_regnamespace('${STORES}') is not null as y`);
  // Checked first, so that an existing schema requires no privilege to create schemas.
  if (schema?.['y'] !== true) await system.script(sql`create schema if not exists ${STORES}`);
  await system.script(CREATE_CONTROL);
}

/** Returns the state of a facet version's store; null if the version has no store, not even one that is being built. */
export async function storeState(
  system: SystemQueries,
  facet: string,
  version: string,
): Promise<StoreState | null> {
  if (!(await hasStores(system))) return null;
  const [row] = await system.query(
    sql`select table_name, fingerprint, settings, epoch, state, documents, chunks, ${INDEXED_AT} as indexed_at
       from ${STORES}.facet where facet = $1 and version = $2`,
    [facet, version],
  );
  if (row === undefined) return null;
  return {
    facet,
    version,
    table: String(row['table_name']),
    fingerprint: String(row['fingerprint']),
    settings: String(row['settings']),
    epoch: String(row['epoch']),
    state: row['state'] === 'ready' ? 'ready' : 'building',
    documents: Number(row['documents']),
    chunks: Number(row['chunks']),
    indexedAt: textOrNull(row['indexed_at']),
  };
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** `StoreState.indexedAt` of all readable stores in a database, by facet and version. */
export async function indexedTimes(
  system: SystemQueries,
): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>> {
  const times = new Map<string, Map<string, string>>();
  if (!(await hasStores(system))) return times;
  const rows = await system.query(
    sql`select facet, version, ${INDEXED_AT} as indexed_at
       from ${STORES}.facet where state = 'ready' and indexed_at is not null`,
  );
  for (const row of rows) {
    const versions = times.get(String(row['facet'])) ?? new Map<string, string>();
    versions.set(String(row['version']), String(row['indexed_at']));
    times.set(String(row['facet']), versions);
  }
  return times;
}

async function hasStores(system: SystemQueries): Promise<boolean> {
  const [there] = await system.query(
    sql`select pg_catalog.to_regclass(${sqlText(`${STORE_SCHEMA}.facet`)}) is not null as y`,
  );
  return there?.['y'] === true;
}

/** A store that a request may read. */
export interface ServedStore extends StoreState {
  /** True if the store's documents are chunked as the manifest currently declares. */
  readonly isCutAsDeclared: boolean;
}

/**
 * Opens the store that a request may read. If the store does not match the manifest but a finished successor does (see
 * `successorOf`), the successor first replaces it, unless it is outdated.
 *
 * @throws ContentError `storeMissing`, `storeMismatch`, `storeBuilding`, `unknownVersion`
 */
export async function openStore(
  system: SystemQueries & Pick<SystemEngine, 'transaction'>,
  facet: Facet,
  version: string,
  embedder: Embedder,
  minLength: number,
): Promise<ServedStore> {
  const settings = settingsHash(facet, versionNamed(facet, version), minLength);
  const isWanted = (state: StoreState | null): boolean =>
    state?.fingerprint === embedder.fingerprint && state.settings === settings;
  let state = await storeState(system, facet.name, version);
  if (!isWanted(state)) {
    const next = await storeState(system, facet.name, successorOf(version));
    if (isWanted(next) && next?.state === 'ready' && !isOutdated(next, state))
      await installSuccessor(system, facet.name, version);
    // Needed even if there is no successor: another request may just have installed it.
    state = await storeState(system, facet.name, version);
  }
  const name = `\`${facet.name}\` in version \`${version}\``;
  const hint = `run \`osl index ${facet.legOf ?? facet.name}\``;
  if (state === null) throw new ContentError('storeMissing', `${name} is not indexed`, hint);
  if (state.fingerprint !== embedder.fingerprint) {
    throw new ContentError('storeMismatch', `${name} was indexed with another embedder`, hint);
  }
  if (!haveSameRules(state.settings, settings)) {
    throw new ContentError('storeMismatch', `${name} was indexed with other settings`, hint);
  }
  if (state.state === 'building')
    throw new ContentError('storeBuilding', `${name} is still being indexed`, hint);
  return { ...state, isCutAsDeclared: state.settings === settings };
}

const DAY_MS = 86_400_000;

/**
 * True if a successor is left from settings that were given up: the store that is served has been read more than a day
 * after it. Documents that have been deleted since would be served again.
 */
function isOutdated(next: StoreState, served: StoreState | null): boolean {
  const [read, last] = [next.indexedAt, served?.indexedAt ?? null];
  return read !== null && last !== null && Date.parse(last) - Date.parse(read) > DAY_MS;
}

/** @throws ContentError `unknownVersion` */
export function versionNamed(facet: Facet, version: string): DeclaredFacetVersion {
  const declared = facet.versions.get(version);
  if (declared !== undefined) return declared;
  throw new ContentError('unknownVersion', `facet \`${facet.name}\` has no version \`${version}\``);
}

/** Removes a facet version's store and its control records. */
export async function dropStore(
  system: Pick<SystemEngine, 'transaction'>,
  facet: string,
  version: string,
): Promise<void> {
  await system.transaction(async (tx) => {
    for (const store of [version, successorOf(version)]) {
      await tx.script(dropTables(facet, store));
      await tx.query(sql`delete from ${STORES}.facet where facet = $1 and version = $2`, [facet, store]);
    }
  });
}

/**
 * Version name of a successor store, which no version in a manifest can have. If a facet version's settings change, its
 * new store is built next to the served one and replaces it when the first gateway with the new settings needs it. So
 * every gateway has a store, both before and after it reloads.
 */
export function successorOf(version: string): string {
  return `${version}~next`;
}

/** Replaces the store with its successor if the successor is ready. Does nothing if another gateway has done so. */
function installSuccessor(
  system: Pick<SystemEngine, 'transaction'>,
  facet: string,
  version: string,
): Promise<void> {
  const next = successorOf(version);
  return system.transaction(async (tx) => {
    const there = await tx.query(
      sql`select 1 as y from ${STORES}.facet where facet = $1 and version = $2 and state = 'ready' for update`,
      [facet, next],
    );
    if (there.length === 0) return;
    await tx.script(dropTables(facet, version));
    for (const tableOf of [storeTable, bitsTable, wordsTable, derivedTable])
      await tx.script(
        sql`alter table if exists ${storeName(tableOf(facet, next))} rename to ${sqlName(tableOf(facet, version))}`,
      );
    await moveEntry(tx, facet, next, version);
  });
}

/**
 * Moves the control records of a store from version `from` to `to`, replacing those of the older store. INVARIANT: the
 * epoch continues from the older store's, so that nothing cached for that store is found.
 */
async function moveEntry(tx: SystemQueries, facet: string, from: string, to: string): Promise<void> {
  const older = await tx.query(
    sql`delete from ${STORES}.facet where facet = $1 and version = $2 returning epoch`,
    [facet, to],
  );
  await tx.query(
    sql`insert into ${STORES}.facet
       (facet, version, table_name, fingerprint, settings, pseudonym_key, run, average_length, epoch, state,
        documents, chunks, indexed_at)
     select facet, $3, $4, fingerprint, settings, pseudonym_key, run, average_length,
            greatest(epoch, $5::int8) + 1, state, documents, chunks, indexed_at
       from ${STORES}.facet where facet = $1 and version = $2`,
    [facet, from, to, storeTable(facet, to), String(older[0]?.['epoch'] ?? 0)],
  );
  await tx.query(sql`update ${STORES}.document set version = $3 where facet = $1 and version = $2`, [
    facet,
    from,
    to,
  ]);
  await tx.query(sql`delete from ${STORES}.facet where facet = $1 and version = $2`, [facet, from]);
}

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/**
 * Query for the current snapshot as text. It is null for tables whose visible rows may change without a transaction on
 * this server: views, foreign tables, tables with children or partitions, tables with other access methods, and tables
 * with row security. It is also null on standbys, on Citus, and on servers that only imitate Postgres, because the
 * meaning of their snapshots is unknown.
 */
const STABLE_SNAPSHOT = sql`
select case when pg_catalog.version() ~ '^PostgreSQL [0-9.]+( [(](Debian|PGlite|Ubuntu) [^)]*[)])? on '
             and not pg_catalog.pg_is_in_recovery()
             and not exists (select from pg_catalog.pg_extension e where e.extname = 'citus')
             and pg_catalog.bool_and(coalesce(
                   c.relkind in ('r', 'm') and a.amname = 'heap' and not c.relrowsecurity
                   and not exists (select from pg_catalog.pg_inherits h where h.inhparent = c.oid), false))
            then pg_catalog.pg_current_snapshot()::text end as snapshot
  from rows from (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[])) as wanted (schema, name)
  left join pg_catalog.pg_namespace n on n.nspname = wanted.schema
  left join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = wanted.name
  left join pg_catalog.pg_am a on a.oid = c.relam`;

/**
 * Returns the state of the data as `pg_snapshot` text; null if the rows of `tables` that ordinary roles read can also
 * change other than by transactions on this server.
 */
export async function stableSnapshot(
  system: SystemQueries,
  tables: readonly TableName[],
): Promise<string | null> {
  const [row] = await system.query(STABLE_SNAPSHOT, [
    tables.map((t) => t.schema),
    tables.map((t) => t.table),
  ]);
  const snapshot = row?.['snapshot'];
  return typeof snapshot === 'string' ? snapshot : null;
}

/**
 * Formats a vector as `vector` or `halfvec` text. Six decimals are precise enough for the f32 components of a unit
 * vector, and take a third of the space of all digits.
 */
export function vectorText(vector: Float32Array): string {
  return toSql(Array.from(vector, (x) => (Number.isInteger(x) ? x : Math.round(x * 1e6) / 1e6)));
}

export function integersText(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}
