import { arrayText, declaredColumn, spelledColumn, type TypeName, typeOfOid } from 'osl-compiler';
import { type SystemEngine, sql } from '../../engine/index.js';
import { tableName } from '../manifest/index.js';

/** The relations that a database's catalog declares. No row is read. */
export interface UpstreamSchema {
  /** Ordered by schema, then by name. */
  readonly relations: readonly UpstreamRelation[];
  /** True if the database has more relations than were read. */
  readonly truncated: boolean;
}

export type UpstreamRelationKind = 'table' | 'view' | 'materialized_view' | 'foreign_table';

export interface UpstreamRelation {
  readonly schema: string;
  readonly name: string;
  readonly kind: UpstreamRelationKind;
  readonly comment: string | null;
  /** The query of a view, with qualified names; null for other relations. */
  readonly definition: string | null;
  /** True if other tables inherit from it. Their rows are then read through it, so its keys do not hold. */
  readonly inherited: boolean;
  /** The planner's estimate of the row count; null for a view, or if the relation was never analyzed. */
  readonly rowEstimate: number | null;
  readonly columns: readonly UpstreamColumn[];
  readonly primaryKey: readonly string[] | null;
  /** Columns of unique constraints and indexes that hold for every row: not partial, deferrable or over expressions. */
  readonly uniqueKeys: readonly (readonly string[])[];
  readonly foreignKeys: readonly UpstreamForeignKey[];
}

interface UpstreamColumn {
  readonly name: string;
  /** The type as Postgres writes it, such as `character varying(20)`. */
  readonly type: string;
  /** OID of the base type, with all domains resolved. */
  readonly typeOid: number;
  /** `atttypmod`, or the domain's type modifier; -1 if there is none. */
  readonly modifier: number;
  /** The base type's name for a manifest's `stored`; null if its cast to text is a user-defined function. */
  readonly stored: string | null;
  /** Labels of an enum, in order; null for other types. */
  readonly labels: readonly string[] | null;
  readonly nullable: boolean;
  /** True if the database supplies the value: a default, an identity or a generated column. */
  readonly filled: boolean;
  /** True if the governed role may read the column. */
  readonly readable: boolean;
  readonly comment: string | null;
}

/** A foreign key, in which `columns[i]` refers to `target.columns[i]`. */
export interface UpstreamForeignKey {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly string[];
  readonly target: { readonly schema: string; readonly name: string; readonly columns: readonly string[] };
}

/** Postgres types, by OID, for which the model uses another type. */
const READ_AS: ReadonlyMap<number, TypeName> = new Map([
  [19, 'text'], // name
  [1043, 'text'], // varchar
  [1003, 'text[]'],
  [1015, 'text[]'],
  [1560, 'varbit'], // bit
  [1561, 'varbit[]'],
]);

export interface ModelledType {
  readonly type: TypeName;
  /** The type as a manifest spells it for this column, such as `varchar(20)` or `numeric(12,2)`. */
  readonly spelled: string;
  /** The database type if the model has no equivalent, so that the column is read as text; otherwise null. */
  readonly stored: string | null;
  /** Labels of an enum, which is identified by name; null for other types. */
  readonly labels: readonly string[] | null;
}

/** Returns the manifest declaration of an upstream column's type; null if its values cannot even be read as text. */
export function modelType({ typeOid, modifier, stored, labels }: UpstreamColumn): ModelledType | null {
  const type = READ_AS.get(typeOid) ?? typeOfOid(typeOid);
  if (type !== null && declaredColumn(type) !== null)
    return { type, spelled: spelledColumn(type, typeOid, modifier), stored: null, labels: null };
  if (stored === null) return null;
  const text = stored.endsWith('[]') ? 'text[]' : 'text';
  return { type: text, spelled: text, stored, labels: stored.startsWith('enum ') ? labels : null };
}

/** Maximum number of relations read from one database. */
export const MAX_RELATIONS = 10_000;

/** Settings of the transaction: read-only, and a short lock timeout, so that a locked catalog does not block it. */
const READ_SETTINGS = sql`
  set transaction read only;
  set local search_path = pg_catalog;
  set local lock_timeout = '2s';
  set local statement_timeout = '20s'`;

/**
 * A single statement, so that the result is consistent. It excludes relations of the system or of an extension, our own
 * stores, temporary relations, and partitions, whose rows belong to their parent. Keys of a table that others inherit
 * from are ignored, because they do not hold for all rows read through it. So are NOT NULL constraints that older rows
 * may violate, and foreign keys over a PERIOD, whose ranges need not be equal; both exist since Postgres 18. A type whose cast to text is a user-defined
 * function has no `stored`: the function could fail on a hidden row or reveal it. Only types used by columns are
 * examined: every table adds two types, so examining all types would be quadratic in the number of tables.
 */
const RELATIONS = sql`
with recursive used(oid) as (
  select a.atttypid from pg_catalog.pg_attribute a where a.attnum > 0 and not a.attisdropped
  union
  select case when t.typtype = 'd' then t.typbasetype else t.typelem end
    from pg_catalog.pg_type t join used u on u.oid = t.oid where t.typtype = 'd' or t.typelem <> 0
), base(oid, root, modifier) as (
  select t.oid, t.oid, -1 from pg_catalog.pg_type t
   where t.typtype <> 'd' and t.oid in (select u.oid from used u)
  union all
  select t.oid, b.root, case when t.typtypmod >= 0 then t.typtypmod else b.modifier end
    from pg_catalog.pg_type t join base b on t.typbasetype = b.oid
   where t.typtype = 'd' and t.oid in (select u.oid from used u)
), stored as (
  select t.oid, case when e.typtype = 'e' and e.oid = t.oid
                          and pg_catalog.has_schema_privilege($3::pg_catalog.name, n.oid, 'USAGE')
                     then 'enum ' else '' end
             || case when n.nspname = 'pg_catalog' then '' else pg_catalog.quote_ident(n.nspname) || '.' end
             || case when n.nspname = 'pg_catalog' and e.typname <> 'char' then e.typname
                     else pg_catalog.quote_ident(e.typname) end
             || case when e.oid = t.oid then '' else '[]' end as stored
    from pg_catalog.pg_type t
    join pg_catalog.pg_type e on e.oid = case when t.typcategory = 'A' and t.typlen = -1 and t.typelem <> 0
                                              then t.typelem else t.oid end
    join pg_catalog.pg_namespace n on n.oid = e.typnamespace
   where e.typtype <> 'p' and t.oid in (select u.oid from used u)
     and not exists (select from base b
                       join pg_catalog.pg_cast k on k.castsource = b.root
                       join pg_catalog.pg_proc f on f.oid = k.castfunc
                       join pg_catalog.pg_language l on l.oid = f.prolang
                      where b.oid = e.oid and k.casttarget = 25 and l.lanname not in ('internal', 'c'))
), chosen as (
  select c.oid, n.nspname, c.relname, c.relkind, c.reltuples,
         pg_catalog.has_schema_privilege($3::pg_catalog.name, n.oid, 'USAGE') as reachable,
         c.relkind <> 'p' and exists (select from pg_catalog.pg_inherits h where h.inhparent = c.oid) as inherited
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition and c.relpersistence <> 't'
     and case when $1::pg_catalog.text[] is null
              then n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and n.nspname !~ '^osl_(content|rollups|control|row_security)$'
              else n.nspname = any ($1::pg_catalog.text[]) end
     and not exists (select from pg_catalog.pg_depend d
                      where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass and d.objid = c.oid
                        and d.deptype = 'e')
   order by n.nspname, c.relname
   limit $2::pg_catalog.int4
)
select c.nspname::text as schema, c.relname::text as name, c.relkind::text as kind,
       c.reltuples::pg_catalog.float8 as estimate, c.inherited,
       case when c.relkind in ('v', 'm') then pg_catalog.pg_get_viewdef(c.oid) end as definition,
       pg_catalog.obj_description(c.oid, 'pg_class') as comment,
       (select pg_catalog.json_agg(pg_catalog.json_build_object(
                 'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod),
                 'typeOid', coalesce(b.root, a.atttypid)::pg_catalog.int8, 'stored', s.stored,
                 'labels', (select pg_catalog.json_agg(l.enumlabel order by l.enumsortorder)
                              from pg_catalog.pg_enum l where l.enumtypid = coalesce(b.root, a.atttypid)),
                 'modifier', case when b.root <> a.atttypid then b.modifier else a.atttypmod end,
                 'nullable', not a.attnotnull
                             or exists (select from pg_catalog.pg_constraint o
                                         where o.conrelid = c.oid and o.contype = 'n' and not o.convalidated
                                           and a.attnum = any (o.conkey)),
                 'filled', a.atthasdef or a.attidentity <> '' or a.attgenerated <> '',
                 'readable', c.reachable
                             and pg_catalog.has_column_privilege($3::pg_catalog.name, c.oid, a.attnum, 'SELECT'),
                 'comment', pg_catalog.col_description(c.oid, a.attnum)) order by a.attnum)
          from pg_catalog.pg_attribute a left join base b on b.oid = a.atttypid
          left join stored s on s.oid = coalesce(b.root, a.atttypid)
         where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) as columns,
       (select pg_catalog.json_agg(pg_catalog.json_build_object(
                 'primary', i.indisprimary,
                 'columns', (select pg_catalog.json_agg(a.attname order by k.at)
                               from pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality k(attnum, at)
                               join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
                              where k.at <= i.indnkeyatts))
               order by i.indisprimary desc, i.indexrelid)
          from pg_catalog.pg_index i
         where not c.inherited and i.indrelid = c.oid and i.indisunique and i.indisvalid and i.indimmediate
           and i.indpred is null and i.indexprs is null) as keys,
       (select pg_catalog.json_agg(pg_catalog.json_build_object(
                 'name', k.conname, 'schema', fn.nspname, 'table', f.relname,
                 'comment', pg_catalog.obj_description(k.oid, 'pg_constraint'),
                 'columns', (select pg_catalog.json_agg(a.attname order by u.at)
                               from pg_catalog.unnest(k.conkey) with ordinality u(attnum, at)
                               join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = u.attnum),
                 'targets', (select pg_catalog.json_agg(a.attname order by u.at)
                               from pg_catalog.unnest(k.confkey) with ordinality u(attnum, at)
                               join pg_catalog.pg_attribute a on a.attrelid = f.oid and a.attnum = u.attnum))
               order by k.conkey, k.conname)
          from pg_catalog.pg_constraint k
          join pg_catalog.pg_class f on f.oid = k.confrelid
          join pg_catalog.pg_namespace fn on fn.oid = f.relnamespace
         where not c.inherited and k.conrelid = c.oid and k.contype = 'f' and k.convalidated and k.conparentid = 0
           and pg_catalog.to_jsonb(k) ->> 'conperiod' is distinct from 'true') as links
  from chosen c
 order by c.nspname, c.relname`;

/**
 * Reads the relations that a database declares, through the system engine.
 *
 * @param schemas the schemas to read, which may be system schemas; null for all except system schemas
 * @throws UpstreamFailure, and Error if the connector has no system credentials
 */
export async function readUpstream(
  system: SystemEngine,
  schemas: readonly string[] | null = null,
  most: number = MAX_RELATIONS,
): Promise<UpstreamSchema> {
  const rows = await system.transaction(async (tx) => {
    await tx.script(READ_SETTINGS);
    return tx.query(RELATIONS, [schemas === null ? null : arrayText(schemas), most + 1, system.reader]);
  });
  const relations = rows.slice(0, most).map((row) => relationOf(row as unknown as UpstreamRow)); // the columns of RELATIONS
  return Object.freeze({ relations, truncated: rows.length > most });
}

interface UpstreamRow {
  readonly schema: string;
  readonly name: string;
  readonly kind: string;
  readonly estimate: number;
  readonly comment: string | null;
  readonly inherited: boolean;
  readonly definition: string | null;
  readonly columns: readonly UpstreamColumn[] | null;
  readonly keys: readonly { readonly primary: boolean; readonly columns: readonly string[] }[] | null;
  readonly links:
    | readonly {
        readonly name: string;
        readonly schema: string;
        readonly table: string;
        readonly comment: string | null;
        readonly columns: readonly string[];
        readonly targets: readonly string[];
      }[]
    | null;
}

const KINDS: ReadonlyMap<string, UpstreamRelationKind> = new Map([
  ['v', 'view'],
  ['m', 'materialized_view'],
  ['f', 'foreign_table'],
]);

function relationOf(row: UpstreamRow): UpstreamRelation {
  const keys = row.keys ?? [];
  return Object.freeze({
    schema: row.schema,
    name: row.name,
    kind: KINDS.get(row.kind) ?? 'table',
    comment: row.comment,
    inherited: row.inherited,
    definition: row.definition,
    rowEstimate: row.kind === 'v' || row.estimate < 0 ? null : Math.round(row.estimate),
    columns: row.columns ?? [],
    primaryKey: keys.find((k) => k.primary)?.columns ?? null,
    uniqueKeys: keys.filter((k) => !k.primary).map((k) => k.columns),
    foreignKeys: (row.links ?? []).map(
      ({ name, schema, table, columns, targets, comment }): UpstreamForeignKey => ({
        name,
        comment,
        columns,
        target: { schema, name: table, columns: targets },
      }),
    ),
  });
}

/** Location of a table's rows in Citus. Tables that are missing from the layout are on a single node. */
type CitusTable =
  | {
      readonly kind: 'distributed';
      /** The distribution column. */
      readonly column: string;
      /** Tables with the same number keep the rows of a distribution value on the same worker. */
      readonly colocation: number;
    }
  /** Every worker has a copy. */
  | { readonly kind: 'reference' };

/** Tables by `schema.table`, written as in a manifest. */
export type CitusLayout = ReadonlyMap<string, CitusTable>;

/** Query for the tables of Citus, without partitions, which are distributed like their parent. */
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
    // Without a distribution column, `t` marks a reference table; other tables are on one node.
    else if (row['method'] === 'n' && row['replication'] === 't') layout.set(name, { kind: 'reference' });
  }
  return layout;
}

/** Returns the distribution columns and the tables distributed by each; the column with the most tables is first. */
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
