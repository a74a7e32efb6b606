import { fromSql, toSql } from 'pgvector';
import { sql } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';

export interface TableName {
  readonly schema: string;
  readonly table: string;
}

/**
 * Excluded: views, foreign or partitioned tables, other table access methods and tables with policies, whose visible
 * rows may change without a transaction of this server; and servers that only imitate Postgres, whose snapshots have
 * an unknown meaning.
 */
const SETTLED = sql`
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
 * The state of the data as `pg_snapshot` text, if only transactions of this server can change what ordinary roles
 * read in `tables`; otherwise null.
 */
export async function settledAt(system: SystemQueries, tables: readonly TableName[]): Promise<string | null> {
  const [row] = await system.query(SETTLED, [tables.map((t) => t.schema), tables.map((t) => t.table)]);
  const snapshot = row?.['snapshot'];
  return typeof snapshot === 'string' ? snapshot : null;
}

/**
 * Text of a `vector` or `halfvec`. Six decimals are precise enough for an f32 of a unit vector, in a third of the
 * text.
 */
export function vectorText(vector: Float32Array): string {
  return toSql(Array.from(vector, (x) => (Number.isInteger(x) ? x : Math.round(x * 1e6) / 1e6)));
}

export function parseVector(text: string): Float32Array {
  return Float32Array.from(fromSql(text));
}

export function integersText(values: readonly number[]): string {
  return `{${values.join(',')}}`;
}
