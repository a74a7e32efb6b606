import { randomBytes } from 'node:crypto';
import type { SystemDoor, SystemQueries } from '../../engine/index.js';
import { STORE_SCHEMA, storeTable } from '../../model/facets/store-names.js';
import type { Facet, FacetVersion } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import type { Embedder } from '../embed/embedder.js';
import { createStore } from './ddl.js';

/** One run of the indexer over one store: whoever begins later takes over. */
export interface Run {
  readonly facet: string;
  readonly version: string;
  readonly table: string;
  readonly id: string;
  readonly pseudonymKey: string;
  /** Whether the store has yet to become ready for the first time. */
  readonly building: boolean;
}

/** Begins a run: goes on with a store of the same fingerprint and settings, or makes a new one. */
export function beginRun(
  system: Pick<SystemDoor, 'transaction'>,
  facet: Facet,
  version: FacetVersion,
  embedder: Embedder,
  settings: string,
): Promise<Run> {
  const table = storeTable(facet.name, version.name);
  const id = randomBytes(16).toString('hex');
  const key = [facet.name, version.name];
  return system.transaction(async (tx) => {
    const [known] = await tx.query(
      `update ${STORE_SCHEMA}.facet set run = $3 where facet = $1 and version = $2
       returning fingerprint, settings, state, pseudonym_key`,
      [...key, id],
    );
    const same = known?.['fingerprint'] === embedder.fingerprint && known['settings'] === settings;
    if (known !== undefined && same) {
      const pseudonymKey = String(known['pseudonym_key']);
      return {
        facet: facet.name,
        version: version.name,
        table,
        id,
        pseudonymKey,
        building: known['state'] !== 'ready',
      };
    }
    const pseudonymKey = randomBytes(32).toString('hex');
    await tx.script(createStore(facet, version.name, embedder.layout));
    await replaceEntry(tx, key, [table, embedder.fingerprint, settings, pseudonymKey, id]);
    return { facet: facet.name, version: version.name, table, id, pseudonymKey, building: true };
  });
}

/** INVARIANT: the epoch goes on where an older store was, so that what was cached for that one is not found. */
async function replaceEntry(
  tx: SystemQueries,
  key: readonly string[],
  fields: readonly string[],
): Promise<void> {
  await tx.query(`delete from ${STORE_SCHEMA}.document where facet = $1 and version = $2`, key);
  await tx.query(
    `insert into ${STORE_SCHEMA}.facet as f
       (facet, version, table_name, fingerprint, settings, pseudonym_key, run, epoch, state)
     values ($1, $2, $3, $4, $5, $6, $7, 1, 'building')
     on conflict (facet, version) do update set
       table_name = excluded.table_name, fingerprint = excluded.fingerprint, settings = excluded.settings,
       pseudonym_key = excluded.pseudonym_key, run = excluded.run, epoch = f.epoch + 1, state = 'building',
       documents = 0, chunks = 0, indexed_at = null`,
    [...key, ...fields],
  );
}

/**
 * Locks the store for the transaction and moves its epoch on.
 *
 * @throws ContentError `overtaken`
 */
export async function bumpEpoch(tx: SystemQueries, run: Run): Promise<void> {
  const rows = await tx.query(
    `update ${STORE_SCHEMA}.facet set epoch = epoch + 1 where facet = $1 and version = $2 and run = $3 returning 1 as y`,
    [run.facet, run.version, run.id],
  );
  if (rows.length === 0) {
    throw new ContentError(
      'overtaken',
      `another indexing of \`${run.facet}\` in version \`${run.version}\` took over`,
    );
  }
}
