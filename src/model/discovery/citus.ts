import { type SystemEngine, sql } from '../../engine/index.js';
import { tableName } from '../manifest/index.js';

/** Where Citus keeps the rows of a table. Tables that it does not list are on the coordinator alone. */
type CitusTable =
  | {
      readonly kind: 'distributed';
      /** The distribution column. */
      readonly column: string;
      /** Tables with the same number have the rows of one distribution value on one worker. */
      readonly colocation: number;
    }
  /** Each worker has a copy. */
  | { readonly kind: 'reference' };

/** Tables by `schema.table`, written as in a manifest. */
export type CitusLayout = ReadonlyMap<string, CitusTable>;

/** Partitions are left out, because their parent is distributed in the same way. */
const TABLES = sql`
select n.nspname::text as schema, c.relname::text as table, p.partmethod::text as method, p.repmodel::text as replication,
       p.colocationid::pg_catalog.int4 as colocation,
       case when p.partkey is not null
            then pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) end as column
  from pg_catalog.pg_dist_partition p
  join pg_catalog.pg_class c on c.oid = p.logicalrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where not c.relispartition
 order by 1, 2`;

/** Reads how Citus distributes the tables. The extension must be installed. @throws UpstreamFailure */
export async function readCitus(system: SystemEngine): Promise<CitusLayout> {
  const layout = new Map<string, CitusTable>();
  for (const row of await system.query(TABLES)) {
    const name = tableName({ schema: String(row['schema']), table: String(row['table']) });
    const column = row['column'];
    if (typeof column === 'string')
      layout.set(name, { kind: 'distributed', column, colocation: Number(row['colocation']) });
    // Without a column, `t` marks a reference table; others are on one node.
    else if (row['method'] === 'n' && row['replication'] === 't') layout.set(name, { kind: 'reference' });
  }
  return layout;
}

/** Distribution columns with the tables distributed by each, most tables first. */
export function distributionColumns(
  layout: CitusLayout,
): readonly { readonly column: string; readonly tables: readonly string[] }[] {
  const tables = new Map<string, string[]>();
  for (const [name, table] of layout) {
    if (table.kind !== 'distributed') continue;
    tables.set(table.column, [...(tables.get(table.column) ?? []), name]);
  }
  return [...tables]
    .map(([column, names]) => ({ column, tables: names }))
    .toSorted((a, b) => b.tables.length - a.tables.length);
}
