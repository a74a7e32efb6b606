import { randomBytes } from 'node:crypto';
import { sql } from '../../base/sql.js';
import type { SystemEngine, SystemQueries } from '../../engine/index.js';
import { storeTable } from '../../model/facets/store-names.js';
import type { DeclaredFacetVersion, Facet } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import type { Embedder } from '../embed/embedder.js';
import { successorOf } from './control.js';
import { createStore, STORES } from './ddl.js';

/** A run of the indexer over one store. A run that starts later over the same store takes over from it. */
export interface IndexRun {
  readonly facet: string;
  /** Version name of the store being written: the successor's, if it is built next to the store that is served. */
  readonly version: string;
  readonly table: string;
  readonly id: string;
  readonly pseudonymKey: string;
  /** True if the store has never been ready. */
  readonly building: boolean;
  readonly averageLength: number;
}

/**
 * Begins a run. Continues a store with the same fingerprint and settings; otherwise creates a new store, next to the
 * existing one if that is being served.
 *
 * @param averageLength used only for a new store
 */
export function beginRun(
  system: Pick<SystemEngine, 'transaction'>,
  facet: Facet,
  version: DeclaredFacetVersion,
  embedder: Embedder,
  settings: string,
  averageLength: number,
): Promise<IndexRun> {
  const id = randomBytes(16).toString('hex');
  return system.transaction(async (tx) => {
    const wanted: RunTarget = { facet, settings, embedder, id };
    const [own, next] = [version.name, successorOf(version.name)];
    const known = await entryOf(tx, facet.name, own);
    const isServedToOthers = known?.state === 'ready' && !fits(known, wanted);
    return isServedToOthers
      ? continueRun(tx, next, await entryOf(tx, facet.name, next), wanted, averageLength)
      : continueRun(tx, own, known, wanted, averageLength);
  });
}

interface RunTarget {
  readonly facet: Facet;
  readonly settings: string;
  readonly embedder: Embedder;
  readonly id: string;
}

interface StoredVersion {
  readonly fingerprint: string;
  readonly settings: string;
  readonly state: string;
  readonly pseudonymKey: string;
  readonly averageLength: number;
}

/** Reads the store's record and locks it, so that concurrent runs wait. */
async function entryOf(tx: SystemQueries, facet: string, version: string): Promise<StoredVersion | null> {
  const [row] = await tx.query(
    sql`select fingerprint, settings, state, pseudonym_key, average_length
       from ${STORES}.facet where facet = $1 and version = $2 for update`,
    [facet, version],
  );
  if (row === undefined) return null;
  return {
    fingerprint: String(row['fingerprint']),
    settings: String(row['settings']),
    state: String(row['state']),
    pseudonymKey: String(row['pseudonym_key']),
    averageLength: Number(row['average_length']),
  };
}

function fits({ fingerprint, settings }: StoredVersion, wanted: RunTarget): boolean {
  return fingerprint === wanted.embedder.fingerprint && settings === wanted.settings;
}

/** Takes over the store of `version`, or recreates it if its fingerprint or settings differ. */
async function continueRun(
  tx: SystemQueries,
  version: string,
  known: StoredVersion | null,
  wanted: RunTarget,
  averageLength: number,
): Promise<IndexRun> {
  const { facet, settings, embedder, id } = wanted;
  const table = storeTable(facet.name, version);
  const key = [facet.name, version];
  if (known !== null && fits(known, wanted)) {
    await tx.query(sql`update ${STORES}.facet set run = $3 where facet = $1 and version = $2`, [...key, id]);
    const building = known.state !== 'ready';
    const { pseudonymKey, averageLength: measured } = known;
    return { facet: facet.name, version, table, id, pseudonymKey, building, averageLength: measured };
  }
  const pseudonymKey = randomBytes(32).toString('hex');
  await tx.script(createStore(facet, version, embedder.layout));
  const entry = [table, embedder.fingerprint, settings, pseudonymKey, id, String(averageLength)];
  await replaceEntry(tx, key, entry);
  return { facet: facet.name, version, table, id, pseudonymKey, building: true, averageLength };
}

/**
 * Writes the record of a new store, replacing that of an older store. INVARIANT: the epoch continues from the replaced
 * store's, so that nothing cached for that store is found.
 */
async function replaceEntry(
  tx: SystemQueries,
  key: readonly string[],
  fields: readonly string[],
): Promise<void> {
  await tx.query(sql`delete from ${STORES}.document where facet = $1 and version = $2`, key);
  await tx.query(
    sql`insert into ${STORES}.facet as f
       (facet, version, table_name, fingerprint, settings, pseudonym_key, run, average_length, epoch, state)
     values ($1, $2, $3, $4, $5, $6, $7, $8, 1, 'building')
     on conflict (facet, version) do update set
       table_name = excluded.table_name, fingerprint = excluded.fingerprint, settings = excluded.settings,
       pseudonym_key = excluded.pseudonym_key, run = excluded.run, average_length = excluded.average_length,
       epoch = f.epoch + 1, state = 'building',
       documents = 0, chunks = 0, indexed_at = null`,
    [...key, ...fields],
  );
}

/**
 * Locks the store for the duration of the transaction and increments its epoch.
 *
 * @throws ContentError `overtaken` if a later run has taken over the store
 */
export async function bumpEpoch(tx: SystemQueries, run: IndexRun): Promise<void> {
  const rows = await tx.query(
    sql`update ${STORES}.facet set epoch = epoch + 1 where facet = $1 and version = $2 and run = $3 returning 1 as y`,
    [run.facet, run.version, run.id],
  );
  if (rows.length === 0) {
    throw new ContentError(
      'overtaken',
      `another indexing of \`${run.facet}\` in version \`${run.version}\` took over`,
    );
  }
}
