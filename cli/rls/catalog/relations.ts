import { sql } from '../../../src/base/sql.js';
import type {
  Grant,
  Index,
  IndexKey,
  Oid,
  PgColumn,
  PgForeignKey,
  PgPublication,
  PgRelation,
  PgRelationKind,
  Policy,
  PolicyCommand,
  ViewDefinition,
} from './catalog.js';

/** A row of a catalog query, as the driver decodes it. */
export type SecurityRow = Readonly<Record<string, unknown>>;

export function textIn(row: SecurityRow, name: string): string {
  const value = row[name];
  if (typeof value !== 'string') throw new TypeError(`column ${name} of the catalog is not text`);
  return value;
}

export function textOrNull(row: SecurityRow, name: string): string | null {
  return row[name] === null ? null : textIn(row, name);
}

/** Decodes integers and OIDs, which the driver returns as numbers or, if 64 bits wide, as text. */
export function numberIn(row: SecurityRow, name: string): number {
  const value = row[name];
  if (value === null || value === '' || !Number.isFinite(Number(value)))
    throw new TypeError(`column ${name} of the catalog is not a number`);
  return Number(value);
}

function numberOrNull(row: SecurityRow, name: string): number | null {
  return row[name] === null ? null : numberIn(row, name);
}

export function flagIn(row: SecurityRow, name: string): boolean {
  const value = row[name];
  if (typeof value !== 'boolean') throw new TypeError(`column ${name} of the catalog is not boolean`);
  return value;
}

/** Decodes an array of texts, in SQL or JSON. */
export function textsIn(row: SecurityRow, name: string): readonly string[] {
  return listIn(row, name).map(String);
}

/** Decodes an array of numbers, in SQL or JSON. */
function numbersIn(row: SecurityRow, name: string): readonly number[] {
  return listIn(row, name).map(Number);
}

/** Decodes a JSON array of objects. */
function rowsIn(row: SecurityRow, name: string): readonly SecurityRow[] {
  return listIn(row, name).map((item) => ({ ...(item as SecurityRow) })); // our own JSON
}

/** Decodes a JSON array of grants. */
export function grantsIn(row: SecurityRow, name: string): readonly Grant[] {
  return rowsIn(row, name).map((grant) => ({
    grantee: numberIn(grant, 'grantee'),
    privilege: textIn(grant, 'privilege'),
  }));
}

function listIn(row: SecurityRow, name: string): readonly unknown[] {
  const value = row[name];
  if (!Array.isArray(value)) throw new TypeError(`column ${name} of the catalog is not a list`);
  return value;
}

/** Groups items by a key. */
export function groupBy<T, K>(items: readonly T[], key: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group === undefined) groups.set(key(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** Selects the user's relations: no system relations and no temporary ones. */
const OF_USERS = sql`c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`;

export const RELATIONS = sql`
  select c.oid::int8 as id, n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind,
         c.relowner::int8 as owner, c.relrowsecurity as row_security, c.relforcerowsecurity as forced,
         nullif(c.reltuples, -1)::float8 as rows,
         (select x.extname::text from pg_catalog.pg_depend d join pg_catalog.pg_extension x on x.oid = d.refobjid
           where d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
             and d.refclassid = 'pg_catalog.pg_extension'::regclass) as extension,
         array(select i.inhparent::int8 from pg_catalog.pg_inherits i where i.inhrelid = c.oid
                order by i.inhseqno)::text[] as parents,
         (select d.refobjid::int8 from pg_catalog.pg_depend d
           where c.relkind = 'S' and d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid
             and d.refclassid = 'pg_catalog.pg_class'::regclass and d.deptype in ('a', 'i') limit 1) as sequence_of,
         case when c.relkind in ('v', 'm') then pg_catalog.pg_get_viewdef(c.oid) end as definition,
         coalesce((select o.option_value::boolean from pg_catalog.pg_options_to_table(c.reloptions) o
                    where o.option_name = 'security_invoker'), false) as invoker,
         coalesce((select o.option_value::boolean from pg_catalog.pg_options_to_table(c.reloptions) o
                    where o.option_name = 'security_barrier'), false) as barrier,
         array(select distinct d.refobjid::int8
                 from pg_catalog.pg_rewrite w
                 join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
                where w.ev_class = c.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
                  and d.refobjid <> c.oid)::text[] as reads,
         array(select distinct d.refobjid::int8
                 from pg_catalog.pg_rewrite w
                 join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
                where w.ev_class = c.oid and d.refclassid = 'pg_catalog.pg_proc'::regclass)::text[] as calls,
         exists (select from pg_catalog.pg_rewrite w
                   join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
                  where w.ev_class = c.oid and d.refclassid = 'pg_catalog.pg_operator'::regclass) as operators,
         (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
            from pg_catalog.aclexplode(coalesce(c.relacl, pg_catalog.acldefault(
              case c.relkind when 'S' then 's'::"char" else 'r'::"char" end, c.relowner))) a) as grants
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where ${OF_USERS}
   order by 2, 3`;

export const COLUMNS = sql`
  select a.attrelid::int8 as relation, a.attname::text as name, pg_catalog.format_type(a.atttypid, null) as type,
         (select l.collname::text from pg_catalog.pg_collation l where l.oid = a.attcollation) as collation,
         pg_catalog.pg_get_expr(d.adbin, d.adrelid) as initial, a.attidentity <> '' as identity, a.attnotnull as required,
         (select coalesce(json_agg(json_build_object('grantee', g.grantee::int8, 'privilege', g.privilege_type)), '[]')
            from pg_catalog.aclexplode(a.attacl) g) as grants
    from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid = a.attrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum and a.attgenerated = ''
   where a.attnum > 0 and not a.attisdropped and c.relkind <> 'S' and ${OF_USERS}
   order by 1, a.attnum`;

export const POLICIES = sql`
  select p.polrelid::int8 as relation, p.polname::text as name, p.polpermissive as permissive, p.polcmd::text as command,
         p.polroles::int8[]::text[] as roles, pg_catalog.pg_get_expr(p.polqual, p.polrelid) as using,
         pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) as check,
         array(select distinct d.refobjid::int8 from pg_catalog.pg_depend d
                where d.classid = 'pg_catalog.pg_policy'::regclass and d.objid = p.oid
                  and d.refclassid = 'pg_catalog.pg_proc'::regclass)::text[] as calls
    from pg_catalog.pg_policy p
   order by 1, 2`;

export const INDEXES = sql`
  select i.indrelid::int8 as relation, c.relname::text as name, m.amname::text as method, i.indisunique as unique,
         k.conname::text as constraint, i.indpred is not null as partial,
         (select json_agg(json_build_object(
                   'column', (select t.attname from pg_catalog.pg_attribute t
                               where t.attrelid = i.indrelid and t.attnum = i.indkey[s.key]),
                   'text', pg_catalog.pg_get_indexdef(i.indexrelid, s.key + 1, true),
                   'class', o.opcname, 'leaky', l.leaky, 'leakproof', l.leakproof) order by s.key)
            from pg_catalog.generate_series(0, i.indnkeyatts - 1) as s(key)
            join pg_catalog.pg_opclass o on o.oid = i.indclass[s.key]
           cross join lateral (
             select coalesce(json_agg(distinct op.oprname) filter (where not f.proleakproof), '[]') as leaky,
                    coalesce(bool_or(f.proleakproof), false) as leakproof
               from pg_catalog.pg_amop a
               join pg_catalog.pg_operator op on op.oid = a.amopopr
               join pg_catalog.pg_proc f on f.oid = op.oprcode
              where a.amopfamily = o.opcfamily and a.amoppurpose = 's' and a.amoplefttype = o.opcintype) l) as keys
    from pg_catalog.pg_index i
    join pg_catalog.pg_class c on c.oid = i.indexrelid
    join pg_catalog.pg_am m on m.oid = c.relam
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    left join pg_catalog.pg_constraint k on k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')
   where i.indisvalid and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 1, 2`;

export const FOREIGN_KEYS = sql`
  select k.conrelid::int8 as relation, k.conname::text as name, k.confrelid::int8 as references,
         array(select a.attname::text from unnest(k.conkey) with ordinality as c(number, place)
                 join pg_catalog.pg_attribute a on a.attrelid = k.conrelid and a.attnum = c.number
                order by c.place) as columns,
         array(select a.attname::text from unnest(k.confkey) with ordinality as c(number, place)
                 join pg_catalog.pg_attribute a on a.attrelid = k.confrelid and a.attnum = c.number
                order by c.place) as referenced
    from pg_catalog.pg_constraint k
   where k.contype = 'f' and k.conparentid = 0
   order by 1, 2`;

/** `pg_publication_tables` resolves FOR ALL TABLES and FOR TABLES IN SCHEMA; row filters need Postgres 15. */
export const PUBLICATIONS = sql`
  select p.pubname::text as name, c.oid::int8 as relation, coalesce(to_jsonb(p) ->> 'rowfilter', '') <> '' as filtered
    from pg_catalog.pg_publication_tables p
    join pg_catalog.pg_namespace n on n.nspname = p.schemaname
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
   order by 1, 2`;

/** Rows returned by the queries above. */
export interface RelationRows {
  readonly relations: readonly SecurityRow[];
  readonly columns: readonly SecurityRow[];
  readonly policies: readonly SecurityRow[];
  readonly indexes: readonly SecurityRow[];
  readonly foreignKeys: readonly SecurityRow[];
}

export function decodeRelations(rows: RelationRows): ReadonlyMap<Oid, PgRelation> {
  const of = (list: readonly SecurityRow[]) => groupBy(list, (row) => numberIn(row, 'relation'));
  const [columns, policies, indexes, keys] = [
    of(rows.columns),
    of(rows.policies),
    of(rows.indexes),
    of(rows.foreignKeys),
  ];
  return new Map(
    rows.relations.map((row) => {
      const id = numberIn(row, 'id');
      const relation: PgRelation = {
        id,
        schema: textIn(row, 'schema'),
        name: textIn(row, 'name'),
        kind: kindOf(textIn(row, 'kind')),
        owner: numberIn(row, 'owner'),
        extension: textOrNull(row, 'extension'),
        rowSecurity: !flagIn(row, 'row_security') ? 'off' : flagIn(row, 'forced') ? 'forced' : 'enabled',
        parents: numbersIn(row, 'parents'),
        estimatedRows: numberOrNull(row, 'rows'),
        grants: grantsIn(row, 'grants'),
        columns: (columns.get(id) ?? []).map(decodeColumn),
        policies: (policies.get(id) ?? []).map(decodePolicy),
        indexes: (indexes.get(id) ?? []).map(decodeIndex),
        foreignKeys: (keys.get(id) ?? []).map(decodeForeignKey),
        view: decodeView(row),
        sequenceOf: numberOrNull(row, 'sequence_of'),
      };
      return [id, relation];
    }),
  );
}

const KINDS: ReadonlyMap<string, PgRelationKind> = new Map([
  ['r', 'table'],
  ['p', 'partitioned table'],
  ['v', 'view'],
  ['m', 'materialized view'],
  ['f', 'foreign table'],
  ['S', 'sequence'],
]);

function kindOf(letter: string): PgRelationKind {
  const kind = KINDS.get(letter);
  if (kind === undefined) throw new TypeError(`unknown kind of relation: ${letter}`);
  return kind;
}

function decodeColumn(row: SecurityRow): PgColumn {
  return {
    name: textIn(row, 'name'),
    type: textIn(row, 'type'),
    collation: textOrNull(row, 'collation'),
    default: textOrNull(row, 'initial'),
    identity: flagIn(row, 'identity'),
    required: flagIn(row, 'required'),
    grants: grantsIn(row, 'grants'),
  };
}

const COMMANDS: ReadonlyMap<string, PolicyCommand> = new Map([
  ['*', 'ALL'],
  ['r', 'SELECT'],
  ['a', 'INSERT'],
  ['w', 'UPDATE'],
  ['d', 'DELETE'],
]);

function decodePolicy(row: SecurityRow): Policy {
  const command = COMMANDS.get(textIn(row, 'command'));
  if (command === undefined) throw new TypeError('unknown command of a policy');
  return {
    name: textIn(row, 'name'),
    permissive: flagIn(row, 'permissive'),
    command,
    roles: numbersIn(row, 'roles'),
    using: textOrNull(row, 'using'),
    check: textOrNull(row, 'check'),
    calls: numbersIn(row, 'calls'),
  };
}

function decodeIndex(row: SecurityRow): Index {
  return {
    name: textIn(row, 'name'),
    method: textIn(row, 'method'),
    unique: flagIn(row, 'unique'),
    constraint: textOrNull(row, 'constraint'),
    partial: flagIn(row, 'partial'),
    keys: rowsIn(row, 'keys').map(
      (key): IndexKey => ({
        column: textOrNull(key, 'column'),
        text: textIn(key, 'text'),
        operatorClass: textIn(key, 'class'),
        leakyOperators: textsIn(key, 'leaky'),
        hasLeakproofOperator: flagIn(key, 'leakproof'),
      }),
    ),
  };
}

function decodeForeignKey(row: SecurityRow): PgForeignKey {
  return {
    name: textIn(row, 'name'),
    columns: textsIn(row, 'columns'),
    references: numberIn(row, 'references'),
    referencedColumns: textsIn(row, 'referenced'),
  };
}

function decodeView(row: SecurityRow): ViewDefinition | null {
  const definition = textOrNull(row, 'definition');
  if (definition === null) return null;
  return {
    definition,
    securityInvoker: flagIn(row, 'invoker'),
    securityBarrier: flagIn(row, 'barrier'),
    reads: numbersIn(row, 'reads'),
    calls: numbersIn(row, 'calls'),
    foreignOperators: flagIn(row, 'operators'),
  };
}

export function decodePublications(rows: readonly SecurityRow[]): readonly PgPublication[] {
  return [...groupBy(rows, (row) => textIn(row, 'name'))].map(([name, tables]) => ({
    name,
    tables: tables.map((row) => ({ relation: numberIn(row, 'relation'), filtered: flagIn(row, 'filtered') })),
  }));
}
