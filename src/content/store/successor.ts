import { sql, sqlName } from '../../base/sql.js';
import type { SystemEngine, SystemQueries } from '../../engine/index.js';
import { bitsTable, derivedTable, storeTable, wordsTable } from '../../model/facets/store-names.js';
import { dropTables, STORES, storeName } from './ddl.js';

/**
 * Version name of a successor store, which no version in a manifest can have. A facet version whose settings changed
 * is built beside the served store and replaces it when the first gateway with these settings needs it, so no
 * gateway is without a store before or after its reload.
 */
export function successorOf(version: string): string {
  return `${version}~next`;
}

/** Replaces the store by its successor if that is ready. Does nothing if another gateway did so meanwhile. */
export function succeed(
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

/** INVARIANT: the epoch continues from that of the older store, so that nothing cached for it is found. */
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
