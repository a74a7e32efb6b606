import { type Sql, sql } from '../../../src/base/sql.js';
import { groupedBy } from '../../../src/model/graph/index.js';
import type {
  DatabaseFunction,
  DefaultPrivilege,
  Index,
  Oid,
  PgColumn,
  PgForeignKey,
  PgRelation,
  PgSchema,
  Policy,
  PublishedTable,
  Role,
  RoleMembership,
  SecurityCatalog,
  UnreadPart,
  Volatility,
} from './catalog.js';

type CatalogRow = Readonly<Record<string, unknown>>;

/** A database session inside a transaction. */
export interface CatalogTransaction {
  query(statement: Sql): Promise<readonly CatalogRow[]>;
}

/**
 * With an empty search_path, Postgres qualifies every name that it prints, except those in pg_catalog. JIT is off,
 * because compiling these queries takes seconds, while running them takes milliseconds.
 */
const SESSION = sql`
  select pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true)`;

/**
 * Reads the security catalog with one query for each kind of object. The session must be in a transaction, which should
 * be REPEATABLE READ and READ ONLY. Any role may read nearly all of the catalog; parts that this role may not read are
 * listed in `unread`.
 *
 * @throws the session's error if the connection fails or the server is older than Postgres 14
 */
export async function readCatalog(session: CatalogTransaction): Promise<SecurityCatalog> {
  await session.query(SESSION);
  const [server] = await itemsOf<ServerItem>(session, SERVER);
  if (server === undefined) throw new Error('the server does not tell its version');
  const unread: UnreadPart[] = [];
  const read = <T>(part: string, statement: Sql): Promise<readonly T[]> =>
    readPart<T>(session, part, statement, unread);
  const roles = await read<Omit<Role, 'memberships'>>('roles', ROLES);
  const memberships = groupedBy(
    await read<RoleMembership & { readonly member: Oid }>('role memberships', MEMBERSHIPS),
    ({ member }) => member,
  );
  const relations = await read<RelationItem>('relations', RELATIONS);
  const columns = byRelation(await read<PgColumn & OfRelation>('columns', COLUMNS));
  const policies = byRelation(await read<Policy & OfRelation>('policies', POLICIES));
  const indexes = byRelation(await read<Index & OfRelation>('indexes', INDEXES));
  const foreignKeys = byRelation(await read<PgForeignKey & OfRelation>('foreign keys', FOREIGN_KEYS));
  const schemas = await read<PgSchema>('schemas', SCHEMAS);
  const functions = await read<DatabaseFunction>('functions', FUNCTIONS);
  const systemFunctions = await read<SystemFunctionItem>('functions of pg_catalog', SYSTEM_FUNCTIONS);
  const casts = await read<{ readonly cast: string }>('casts', BINARY_CASTS);
  const published = await read<PublishedTable & { readonly name: string }>('publications', PUBLICATIONS);
  const defaultPrivileges = await read<DefaultPrivilege>('default privileges', DEFAULT_PRIVILEGES);
  return {
    database: server.database,
    server: { version: server.version.split(' ')[0] ?? '', number: server.number },
    reader: server.reader,
    roles: byId(roles.map((role) => ({ ...role, memberships: memberships.get(role.id) ?? [] }))),
    schemas: new Map(schemas.map((schema) => [schema.name, schema])),
    relations: byId(
      relations.map((relation) => ({
        ...relation,
        columns: columns.get(relation.id) ?? [],
        policies: policies.get(relation.id) ?? [],
        indexes: indexes.get(relation.id) ?? [],
        foreignKeys: foreignKeys.get(relation.id) ?? [],
      })),
    ),
    functions: byId(functions),
    systemFunctions: new Map(systemFunctions.map(({ name, volatility }) => [name, volatility])),
    binaryCasts: new Set(casts.map(({ cast }) => cast)),
    publications: [...groupedBy(published, ({ name }) => name)].map(([name, tables]) => ({ name, tables })),
    defaultPrivileges,
    unread,
  };
}

interface OfRelation {
  readonly relation: Oid;
}

function byRelation<T extends OfRelation>(items: readonly T[]): ReadonlyMap<Oid, readonly T[]> {
  return groupedBy(items, ({ relation }) => relation);
}

function byId<T extends { readonly id: Oid }>(items: readonly T[]): ReadonlyMap<Oid, T> {
  return new Map(items.map((item) => [item.id, item]));
}

/** Runs a query in a savepoint, so that other parts can be read if the role may not read this one. */
async function readPart<T>(
  session: CatalogTransaction,
  part: string,
  statement: Sql,
  unread: UnreadPart[],
): Promise<readonly T[]> {
  await session.query(sql`savepoint part`);
  try {
    const items = await itemsOf<T>(session, statement);
    await session.query(sql`release savepoint part`);
    return items;
  } catch (error) {
    if (!isDenied(error)) throw error;
    await session.query(sql`rollback to savepoint part`);
    unread.push({ part, reason: error.message });
    return [];
  }
}

/** Runs a query as JSON, so that drivers decode OIDs, lists and objects alike. Its columns are the members of `T`. */
async function itemsOf<T>(session: CatalogTransaction, statement: Sql): Promise<readonly T[]> {
  const rows = await session.query(sql`select pg_catalog.to_json(item) as item from (${statement}) as item`);
  return rows.map(({ item }) => item as T); // the queries below name the members
}

const INSUFFICIENT_PRIVILEGE = '42501';

function isDenied(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const fields: CatalogRow = { ...error };
  return fields['sqlstate'] === INSUFFICIENT_PRIVILEGE || fields['code'] === INSUFFICIENT_PRIVILEGE;
}

interface ServerItem {
  readonly database: string;
  readonly reader: string;
  readonly version: string;
  readonly number: number;
}

const SERVER = sql`
  select pg_catalog.current_database() as database, current_user as reader,
         pg_catalog.current_setting('server_version') as version,
         pg_catalog.current_setting('server_version_num')::int as number`;

/** Grants of an access control list. */
const grantsOf = (acl: Sql): Sql => sql`
  (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
     from pg_catalog.aclexplode(${acl}) a)`;

/** The extension that an object belongs to. */
const extensionOf = (catalog: Sql, id: Sql): Sql => sql`
  (select x.extname from pg_catalog.pg_depend d join pg_catalog.pg_extension x on x.oid = d.refobjid
    where d.classid = ${catalog}::regclass and d.objid = ${id} and d.deptype = 'e'
      and d.refclassid = 'pg_catalog.pg_extension'::regclass)`;

/** Letters of volatilities sort by volatility, which `max` in SYSTEM_FUNCTIONS requires. */
const volatilityOf = (letter: Sql): Sql =>
  sql`case ${letter} when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end`;

const FUNCTIONS = sql`
  select p.oid::int8 as id, n.nspname as schema, p.proname as name,
         pg_catalog.oidvectortypes(p.proargtypes) as arguments,
         (select coalesce(json_agg(name order by place), '[]')
            from unnest(p.proargnames[1:p.pronargs]) with ordinality as a (name, place)) as "argumentNames",
         l.lanname as language, ${volatilityOf(sql`p.provolatile`)} as volatility, p.proleakproof as leakproof,
         p.prosecdef as "securityDefiner", p.proowner::int8 as owner,
         ${extensionOf(sql`'pg_catalog.pg_proc'`, sql`p.oid`)} as extension,
         p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype) as "returnsTrigger",
         p.proretset as "returnsSet", p.proisstrict as strict,
         (select substr(setting, 13) from unnest(p.proconfig) as setting where setting like 'search\_path=%') as "searchPath",
         coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as body,
         pg_catalog.pg_get_function_sqlbody(p.oid) is not null as bound,
         ${grantsOf(sql`coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))`)} as grants
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    join pg_catalog.pg_language l on l.oid = p.prolang
   where p.prokind in ('f', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by n.nspname::text, p.proname::text, arguments`;

interface SystemFunctionItem {
  readonly name: string;
  readonly volatility: Volatility;
}

const SYSTEM_FUNCTIONS = sql`
  select p.proname as name, ${volatilityOf(sql`max(p.provolatile::text)`)} as volatility
    from pg_catalog.pg_proc p
   where p.pronamespace = 'pg_catalog'::regnamespace and p.provolatile <> 'i'
   group by 1`;

/** A domain is cast to its base type, and then as its base type is. */
const BINARY_CASTS = sql`
  with recursive step (source, target, is_domain) as (
    select t.oid, t.typbasetype, true from pg_catalog.pg_type t where t.typtype = 'd'
    union all select c.castsource, c.casttarget, false from pg_catalog.pg_cast c where c.castmethod = 'b'
  ), pair (source, target, is_domain) as (
    select source, target, is_domain from step
    union select p.source, s.target, true from pair p join step s on s.source = p.target where p.is_domain
  )
  select pg_catalog.format_type(source, null) || '>' || pg_catalog.format_type(target, null) as cast from pair`;

/** If a setting is set several times, selects the value that a login gets: role in database, role, database, all. */
const ROLES = sql`
  select r.oid::int8 as id, r.rolname as name, r.rolcanlogin as login, r.rolsuper as superuser,
         r.rolbypassrls as "bypassRowSecurity", r.rolcreaterole as "createRole", r.rolreplication as replication,
         array(select distinct on (split_part(setting, '=', 1)) setting
                 from pg_catalog.pg_db_role_setting s, unnest(s.setconfig) as setting
                where s.setrole in (r.oid, 0)
                  and s.setdatabase in (0, (select oid from pg_catalog.pg_database
                                             where datname = pg_catalog.current_database()))
                order by split_part(setting, '=', 1), s.setrole = 0, s.setdatabase = 0) as settings
    from pg_catalog.pg_roles r
   order by r.rolname`;

/** Before Postgres 16, memberships have no options, and INHERIT is an attribute of the member role. */
const MEMBERSHIPS = sql`
  select m.member::int8 as member, m.roleid::int8 as role,
         coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) as inherit,
         coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) as set
    from pg_catalog.pg_auth_members m join pg_catalog.pg_roles r on r.oid = m.member
   union all
  select d.datdba::int8, o.oid::int8, true, true
    from pg_catalog.pg_database d, pg_catalog.pg_roles o
   where d.datname = pg_catalog.current_database() and o.rolname = 'pg_database_owner'
   order by 1, 2`;

const SCHEMAS = sql`
  select n.nspname as name, n.nspowner::int8 as owner,
         ${grantsOf(sql`coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))`)} as grants
    from pg_catalog.pg_namespace n
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by n.nspname::text`;

const DEFAULT_PRIVILEGES = sql`
  select d.defaclrole::int8 as creator, n.nspname as schema,
         case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
                              when 'T' then 'types' when 'n' then 'schemas' else 'large objects' end as objects,
         json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type) as grant
    from pg_catalog.pg_default_acl d
    left join pg_catalog.pg_namespace n on n.oid = d.defaclnamespace
   cross join pg_catalog.aclexplode(d.defaclacl) a
   where a.grantee <> d.defaclrole
   order by d.defaclrole, n.nspname::text, d.defaclobjtype::text, a.grantee, a.privilege_type`;

/** Selects the user's relations: no system relations and no temporary ones. */
const OF_USERS = sql`c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`;

/** Dependencies of a view on objects of a catalog. */
const viewDependencies = (catalog: Sql): Sql => sql`
  from pg_catalog.pg_rewrite w
  join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_rewrite'::regclass and d.objid = w.oid
 where w.ev_class = c.oid and d.refclassid = ${catalog}::regclass`;

const optionOf = (name: Sql): Sql => sql`
  coalesce((select o.option_value::boolean from pg_catalog.pg_options_to_table(c.reloptions) o
             where o.option_name = ${name}), false)`;

type RelationItem = Omit<PgRelation, 'columns' | 'policies' | 'indexes' | 'foreignKeys'>;

const RELATIONS = sql`
  select c.oid::int8 as id, n.nspname as schema, c.relname as name,
         case c.relkind when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view'
                        when 'm' then 'materialized view' when 'f' then 'foreign table' else 'sequence' end as kind,
         c.relowner::int8 as owner, ${extensionOf(sql`'pg_catalog.pg_class'`, sql`c.oid`)} as extension,
         case when not c.relrowsecurity then 'off' when c.relforcerowsecurity then 'forced' else 'enabled' end as "rowSecurity",
         array(select i.inhparent::int8 from pg_catalog.pg_inherits i where i.inhrelid = c.oid
                order by i.inhseqno) as parents,
         nullif(c.reltuples, -1)::float8 as "estimatedRows",
         ${grantsOf(sql`coalesce(c.relacl, pg_catalog.acldefault(
           case c.relkind when 'S' then 's'::"char" else 'r'::"char" end, c.relowner))`)} as grants,
         case when c.relkind in ('v', 'm') then json_build_object(
           'definition', pg_catalog.pg_get_viewdef(c.oid),
           'securityInvoker', ${optionOf(sql`'security_invoker'`)},
           'securityBarrier', ${optionOf(sql`'security_barrier'`)},
           'reads', array(select distinct d.refobjid::int8 ${viewDependencies(sql`'pg_catalog.pg_class'`)}
                             and d.refobjid <> c.oid),
           'calls', array(select distinct d.refobjid::int8 ${viewDependencies(sql`'pg_catalog.pg_proc'`)}),
           'foreignOperators', exists (select ${viewDependencies(sql`'pg_catalog.pg_operator'`)})) end as view,
         (select d.refobjid::int8 from pg_catalog.pg_depend d
           where c.relkind = 'S' and d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid
             and d.refclassid = 'pg_catalog.pg_class'::regclass and d.deptype in ('a', 'i') limit 1) as "sequenceOf"
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where ${OF_USERS}
   order by n.nspname::text, c.relname::text`;

const COLUMNS = sql`
  select a.attrelid::int8 as relation, a.attname as name, pg_catalog.format_type(a.atttypid, null) as type,
         (select l.collname from pg_catalog.pg_collation l where l.oid = a.attcollation) as collation,
         pg_catalog.pg_get_expr(d.adbin, d.adrelid) as default, a.attidentity <> '' as identity,
         a.attnotnull as required, ${grantsOf(sql`a.attacl`)} as grants
    from pg_catalog.pg_attribute a
    join pg_catalog.pg_class c on c.oid = a.attrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum and a.attgenerated = ''
   where a.attnum > 0 and not a.attisdropped and c.relkind <> 'S' and ${OF_USERS}
   order by a.attrelid, a.attnum`;

const POLICIES = sql`
  select p.polrelid::int8 as relation, p.polname as name, p.polpermissive as permissive,
         case p.polcmd when '*' then 'ALL' when 'r' then 'SELECT' when 'a' then 'INSERT' when 'w' then 'UPDATE'
                       else 'DELETE' end as command,
         p.polroles::int8[] as roles, pg_catalog.pg_get_expr(p.polqual, p.polrelid) as using,
         pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid) as check,
         array(select distinct d.refobjid::int8 from pg_catalog.pg_depend d
                where d.classid = 'pg_catalog.pg_policy'::regclass and d.objid = p.oid
                  and d.refclassid = 'pg_catalog.pg_proc'::regclass) as calls
    from pg_catalog.pg_policy p
   order by p.polrelid, p.polname::text`;

const INDEXES = sql`
  select i.indrelid::int8 as relation, c.relname as name, m.amname as method, i.indisunique as unique,
         k.conname as constraint, i.indpred is not null as partial,
         (select json_agg(json_build_object(
                   'column', (select t.attname from pg_catalog.pg_attribute t
                               where t.attrelid = i.indrelid and t.attnum = i.indkey[s.key]),
                   'text', pg_catalog.pg_get_indexdef(i.indexrelid, s.key + 1, true),
                   'operatorClass', o.opcname, 'leakyOperators', l.leaky, 'hasLeakproofOperator', l.leakproof)
                   order by s.key)
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
   order by i.indrelid, c.relname::text`;

/** Names of the columns of a foreign key, in the order of the key. */
const columnNames = (numbers: Sql, relation: Sql): Sql => sql`
  array(select a.attname from unnest(${numbers}) with ordinality as c(number, place)
          join pg_catalog.pg_attribute a on a.attrelid = ${relation} and a.attnum = c.number
         order by c.place)`;

const FOREIGN_KEYS = sql`
  select k.conrelid::int8 as relation, k.conname as name, ${columnNames(sql`k.conkey`, sql`k.conrelid`)} as columns,
         k.confrelid::int8 as references, ${columnNames(sql`k.confkey`, sql`k.confrelid`)} as "referencedColumns"
    from pg_catalog.pg_constraint k
   where k.contype = 'f' and k.conparentid = 0
   order by k.conrelid, k.conname::text`;

/** `pg_publication_tables` resolves FOR ALL TABLES and FOR TABLES IN SCHEMA; row filters need Postgres 15. */
const PUBLICATIONS = sql`
  select p.pubname as name, c.oid::int8 as relation, coalesce(to_jsonb(p) ->> 'rowfilter', '') <> '' as filtered
    from pg_catalog.pg_publication_tables p
    join pg_catalog.pg_namespace n on n.nspname = p.schemaname
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = p.tablename
   order by p.pubname::text, c.oid`;
