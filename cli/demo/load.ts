import { sql } from '../../src/base/sql.js';
import type { SystemEngine, SystemQueries } from '../../src/engine/index.js';
import { lockFingerprint } from './package.js';
import { readSupplyChain } from './read.js';
import {
  CREATE_KEYS,
  CREATE_TABLES,
  DemoProblem,
  type OnProgress,
  SCHEMA_COMMENT,
  type SupplyChain,
  type TableLoad,
  tableLoads,
} from './tables.js';

export type DemoProgress = (step: 'read' | 'load', done: number, total: number) => void;

/**
 * Loads the demo for the installation in `root` if necessary.
 *
 * @returns true if anything was loaded
 * @throws DemoProblem, UpstreamFailure
 */
export async function ensureDemo(
  system: SystemEngine,
  root: string,
  onProgress: DemoProgress = () => {},
): Promise<boolean> {
  const fingerprint = await lockFingerprint(root);
  if (await isLoaded(system, fingerprint)) {
    // Grant again, because the process may have been killed between load and grant.
    await system.grantRead('supply');
    return false;
  }
  const chain = await readSupplyChain(root, (done, total) => onProgress('read', done, total));
  return loadDemo(system, chain, (done, total) => onProgress('load', done, total));
}

/**
 * Loads `chain` into schema `supply`, replacing an older demo, in one transaction.
 *
 * @param onProgress rows loaded so far, and total
 * @returns false if these rows are already loaded
 * @throws DemoProblem if another application owns a schema `supply`; UpstreamFailure
 */
export async function loadDemo(
  system: SystemEngine,
  chain: SupplyChain,
  onProgress: OnProgress = () => {},
): Promise<boolean> {
  const loaded = await system.transaction(async (tx) => {
    // Serializes processes that start at the same time. The number is arbitrary.
    await tx.query(sql`select pg_catalog.pg_advisory_xact_lock(7308604875124592713)`);
    if (await isLoaded(tx, chain.fingerprint)) return false;
    await dropOlder(tx);
    await tx.script(CREATE_TABLES);
    await copyAll(tx, tableLoads(chain), onProgress);
    await tx.script(CREATE_KEYS);
    await tx.query(sql`insert into supply.loaded (lock_sha256) values ($1)`, [chain.fingerprint]);
    return true;
  });
  await system.grantRead('supply');
  return loaded;
}

/** Rows per COPY, small enough for the progress bar to move steadily. */
const BATCH = 200;

async function copyAll(
  tx: SystemQueries,
  loads: readonly TableLoad[],
  onProgress: OnProgress,
): Promise<void> {
  const total = loads.reduce((sum, l) => sum + l.rows.length, 0);
  let done = 0;
  for (const { table, columns, rows } of loads) {
    for (let at = 0; at < rows.length; at += BATCH) {
      done += await tx.copyIn({ schema: 'supply', table, columns }, rows.slice(at, at + BATCH));
      onProgress(done, total);
    }
  }
}

/**
 * True if the demo with this fingerprint is loaded. Its marker row is written last, in the same transaction as the
 * data.
 */
async function isLoaded(system: SystemQueries, fingerprint: string): Promise<boolean> {
  const [there] = await system.query(
    sql`select pg_catalog.to_regclass('supply.loaded') is not null as there`,
  );
  if (there?.['there'] !== true) return false;
  const rows = await system.query(sql`select 1 from supply.loaded where lock_sha256 = $1`, [fingerprint]);
  return rows.length > 0;
}

async function dropOlder(tx: SystemQueries): Promise<void> {
  const [schema] = await tx.query(
    sql`select pg_catalog.obj_description(oid, 'pg_namespace') as comment from pg_catalog.pg_namespace where nspname = 'supply'`,
  );
  if (schema === undefined) return;
  if (schema['comment'] !== SCHEMA_COMMENT) {
    throw new DemoProblem(
      'the database has a schema `supply` that is not the demo’s: load the demo into another database',
    );
  }
  await tx.script(sql`drop schema supply cascade`);
}
