import type { SetupQuery } from './connect.js';

/** A foreign server of this database. */
export interface ForeignServer {
  readonly name: string;
  /** Quoted name of one of its tables that the governed role can read, for health checks; null if it can read none. */
  readonly readable: string | null;
}

/** Foreign tables and partitions of a database. */
export interface ForeignTables {
  readonly servers: readonly ForeignServer[];
  /** True if a partitioned table has foreign partitions. */
  readonly partitions: boolean;
  /** Warnings for the operator. */
  readonly warnings: readonly string[];
}

/**
 * Query for the foreign servers that have tables. `timed` is true if `connect_timeout` is set, false if not, and null
 * if the server does not use postgres_fdw.
 */
const SERVERS = `
  select s.srvname::text as name,
         case when w.fdwhandler::pg_catalog.regproc::text ~ '(^|\\.)postgres_fdw_handler$'
              then coalesce(s.srvoptions::text like '%connect_timeout=%', false) end as timed,
         pg_catalog.bool_or(c.relispartition) as partitions,
         (pg_catalog.array_agg(pg_catalog.format('%I.%I', n.nspname, c.relname) order by c.oid)
            filter (where pg_catalog.has_table_privilege(c.oid, 'SELECT')
                      and pg_catalog.has_schema_privilege(n.oid, 'USAGE')))[1] as readable
    from pg_catalog.pg_foreign_table f
    join pg_catalog.pg_foreign_server s on s.oid = f.ftserver
    join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
    join pg_catalog.pg_class c on c.oid = f.ftrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   group by s.srvname, w.fdwhandler, s.srvoptions
   order by 1`;

/** Reads the foreign servers as the governed role, whose privileges determine which tables are readable. */
export async function surveyForeign(query: SetupQuery): Promise<ForeignTables> {
  const rows = await query(SERVERS);
  const namesWhere = (predicate: (row: Record<string, unknown>) => boolean): readonly string[] =>
    rows.filter(predicate).map((row) => String(row['name']));
  const withoutTimeout = namesWhere((row) => row['timed'] === false);
  const unreadable = namesWhere((row) => row['readable'] === null);
  return Object.freeze({
    servers: rows.map(({ name, readable }) => {
      return Object.freeze({ name: String(name), readable: typeof readable === 'string' ? readable : null });
    }),
    partitions: rows.some((row) => row['partitions'] === true),
    warnings: [
      ...withoutTimeout.map(
        (name) =>
          `foreign server "${name}" has no connect_timeout: while it cannot be reached, questions wait as long as the network does`,
      ),
      ...unreadable.map(
        (name) => `foreign server "${name}" has no table that the role may read: it is not watched`,
      ),
    ],
  });
}

/**
 * Settings that let foreign partitions be joined and aggregated remotely. They are off by default in Postgres because
 * they slow down planning, which matters little compared with network traffic.
 */
export const PARTITIONWISE =
  '; SET enable_partitionwise_join TO on; SET enable_partitionwise_aggregate TO on';
