import { type Sql, sql } from '../../../src/base/sql.js';
import type {
  DatabaseFunction,
  DefaultPrivilege,
  Oid,
  PgSchema,
  Role,
  SecurityCatalog,
  UnreadPart,
  Volatility,
} from './catalog.js';
import * as relations from './relations.js';
import {
  flagIn,
  grantsIn,
  groupBy,
  numberIn,
  type SecurityRow,
  textIn,
  textOrNull,
  textsIn,
} from './relations.js';

/** A database session inside a transaction. */
export interface CatalogTransaction {
  query(statement: Sql): Promise<readonly SecurityRow[]>;
}

const SERVER = sql`
  select pg_catalog.current_database()::text as database, current_user::text as reader,
         pg_catalog.current_setting('server_version') as version,
         pg_catalog.current_setting('server_version_num') as number`;

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
  const [server] = await session.query(SERVER);
  if (server === undefined) throw new Error('the server does not tell its version');
  const unread: UnreadPart[] = [];
  const read = (part: string, statement: Sql): Promise<readonly SecurityRow[]> =>
    readPart(session, part, statement, unread);
  const roleRows = await read('roles', ROLES);
  const memberships = await read('role memberships', MEMBERSHIPS);
  const relationRows = {
    relations: await read('relations', relations.RELATIONS),
    columns: await read('columns', relations.COLUMNS),
    policies: await read('policies', relations.POLICIES),
    indexes: await read('indexes', relations.INDEXES),
    foreignKeys: await read('foreign keys', relations.FOREIGN_KEYS),
  };
  const schemas = await read('schemas', SCHEMAS);
  const functionRows = await read('functions', FUNCTIONS);
  const systemFunctions = await read('functions of pg_catalog', SYSTEM_FUNCTIONS);
  const casts = await read('casts', BINARY_CASTS);
  const publications = await read('publications', relations.PUBLICATIONS);
  const defaults = await read('default privileges', DEFAULT_PRIVILEGES);
  return {
    database: textIn(server, 'database'),
    server: { version: textIn(server, 'version').split(' ')[0] ?? '', number: numberIn(server, 'number') },
    reader: textIn(server, 'reader'),
    roles: decodeRoles(roleRows, memberships),
    schemas: decodeSchemas(schemas),
    relations: relations.decodeRelations(relationRows),
    functions: decodeFunctions(functionRows),
    systemFunctions: decodeSystemFunctions(systemFunctions),
    binaryCasts: decodeBinaryCasts(casts),
    publications: relations.decodePublications(publications),
    defaultPrivileges: decodeDefaultPrivileges(defaults),
    unread,
  };
}

/** Runs a query in a savepoint, so that other parts can be read if the role may not read this one. */
async function readPart(
  session: CatalogTransaction,
  part: string,
  statement: Sql,
  unread: UnreadPart[],
): Promise<readonly SecurityRow[]> {
  await session.query(sql`savepoint part`);
  try {
    const rows = await session.query(statement);
    await session.query(sql`release savepoint part`);
    return rows;
  } catch (error) {
    if (!isDenied(error)) throw error;
    await session.query(sql`rollback to savepoint part`);
    unread.push({ part, reason: error.message });
    return [];
  }
}

const INSUFFICIENT_PRIVILEGE = '42501';

function isDenied(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const fields: SecurityRow = { ...error };
  return fields['sqlstate'] === INSUFFICIENT_PRIVILEGE || fields['code'] === INSUFFICIENT_PRIVILEGE;
}

const FUNCTIONS = sql`
  select p.oid::int8 as id, n.nspname::text as schema, p.proname::text as name,
         pg_catalog.oidvectortypes(p.proargtypes) as arguments,
         (select coalesce(json_agg(name order by place), '[]')
            from unnest(p.proargnames[1:p.pronargs]) with ordinality as a (name, place)) as argument_names, l.lanname::text as language,
         p.provolatile::text as volatility, p.proleakproof as leakproof, p.prosecdef as definer,
         p.proretset as returns_set, p.proisstrict as strict,
         p.proowner::int8 as owner, p.prorettype in ('trigger'::regtype, 'event_trigger'::regtype) as trigger,
         (select x.extname::text from pg_catalog.pg_depend d join pg_catalog.pg_extension x on x.oid = d.refobjid
           where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
             and d.refclassid = 'pg_catalog.pg_extension'::regclass) as extension,
         (select substr(setting, 13) from unnest(p.proconfig) as setting where setting like 'search_path=%') as search_path,
         coalesce(pg_catalog.pg_get_function_sqlbody(p.oid), p.prosrc) as body,
         pg_catalog.pg_get_function_sqlbody(p.oid) is not null as bound,
         (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
            from pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a) as grants
    from pg_catalog.pg_proc p
    join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    join pg_catalog.pg_language l on l.oid = p.prolang
   where p.prokind in ('f', 'p') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 2, 3, 4`;

const SYSTEM_FUNCTIONS = sql`
  select p.proname::text as name, max(p.provolatile::text) as volatility
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

/** Volatility by `provolatile` letter. Letters sort by volatility, as `max` in SYSTEM_FUNCTIONS requires. */
const VOLATILITIES: ReadonlyMap<string, Volatility> = new Map([
  ['i', 'immutable'],
  ['s', 'stable'],
  ['v', 'volatile'],
]);

function volatilityOf(row: SecurityRow): Volatility {
  const volatility = VOLATILITIES.get(textIn(row, 'volatility'));
  if (volatility === undefined) throw new TypeError('unknown volatility of a function');
  return volatility;
}

function decodeFunctions(rows: readonly SecurityRow[]): ReadonlyMap<Oid, DatabaseFunction> {
  return new Map(
    rows.map((row) => {
      const id = numberIn(row, 'id');
      const decoded: DatabaseFunction = {
        id,
        schema: textIn(row, 'schema'),
        name: textIn(row, 'name'),
        arguments: textIn(row, 'arguments'),
        argumentNames: textsIn(row, 'argument_names'),
        language: textIn(row, 'language'),
        volatility: volatilityOf(row),
        leakproof: flagIn(row, 'leakproof'),
        securityDefiner: flagIn(row, 'definer'),
        owner: numberIn(row, 'owner'),
        extension: textOrNull(row, 'extension'),
        returnsTrigger: flagIn(row, 'trigger'),
        returnsSet: flagIn(row, 'returns_set'),
        strict: flagIn(row, 'strict'),
        searchPath: textOrNull(row, 'search_path'),
        body: textIn(row, 'body'),
        bound: flagIn(row, 'bound'),
        grants: grantsIn(row, 'grants'),
      };
      return [id, decoded];
    }),
  );
}

function decodeSystemFunctions(rows: readonly SecurityRow[]): ReadonlyMap<string, Volatility> {
  return new Map(rows.map((row) => [textIn(row, 'name'), volatilityOf(row)]));
}

function decodeBinaryCasts(rows: readonly SecurityRow[]): ReadonlySet<string> {
  return new Set(rows.map((row) => textIn(row, 'cast')));
}

/** If a setting is set several times, selects the value that a login gets: role in database, role, database, all. */
const ROLES = sql`
  select r.oid::int8 as id, r.rolname::text as name, r.rolcanlogin as login, r.rolsuper as super,
         r.rolbypassrls as bypass, r.rolcreaterole as create_role, r.rolreplication as replication,
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
  select n.nspname::text as name, n.nspowner::int8 as owner,
         (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
            from pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a) as grants
    from pg_catalog.pg_namespace n
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 1`;

const DEFAULT_PRIVILEGES = sql`
  select d.defaclrole::int8 as creator, n.nspname::text as schema, d.defaclobjtype::text as objects,
         a.grantee::int8 as grantee, a.privilege_type as privilege
    from pg_catalog.pg_default_acl d
    left join pg_catalog.pg_namespace n on n.oid = d.defaclnamespace
   cross join pg_catalog.aclexplode(d.defaclacl) a
   where a.grantee <> d.defaclrole
   order by 1, 2, 3, 4, 5`;

function decodeRoles(
  rows: readonly SecurityRow[],
  memberships: readonly SecurityRow[],
): ReadonlyMap<Oid, Role> {
  const byMember = groupBy(memberships, (row) => numberIn(row, 'member'));
  return new Map(
    rows.map((row) => {
      const id = numberIn(row, 'id');
      const role: Role = {
        id,
        name: textIn(row, 'name'),
        login: flagIn(row, 'login'),
        superuser: flagIn(row, 'super'),
        bypassRowSecurity: flagIn(row, 'bypass'),
        createRole: flagIn(row, 'create_role'),
        replication: flagIn(row, 'replication'),
        memberships: (byMember.get(id) ?? []).map((m) => ({
          role: numberIn(m, 'role'),
          inherit: flagIn(m, 'inherit'),
          set: flagIn(m, 'set'),
        })),
        settings: textsIn(row, 'settings'),
      };
      return [id, role];
    }),
  );
}

function decodeSchemas(rows: readonly SecurityRow[]): ReadonlyMap<string, PgSchema> {
  return new Map(
    rows.map((row) => {
      const name = textIn(row, 'name');
      return [name, { name, owner: numberIn(row, 'owner'), grants: grantsIn(row, 'grants') }];
    }),
  );
}

const OBJECTS: ReadonlyMap<string, DefaultPrivilege['objects']> = new Map([
  ['r', 'tables'],
  ['S', 'sequences'],
  ['f', 'functions'],
  ['T', 'types'],
  ['n', 'schemas'],
  ['L', 'large objects'],
]);

function decodeDefaultPrivileges(rows: readonly SecurityRow[]): readonly DefaultPrivilege[] {
  return rows.map((row) => {
    const objects = OBJECTS.get(textIn(row, 'objects'));
    if (objects === undefined) throw new TypeError(`unknown objects of default privileges`);
    const grant = { grantee: numberIn(row, 'grantee'), privilege: textIn(row, 'privilege') };
    return { creator: numberIn(row, 'creator'), schema: textOrNull(row, 'schema'), objects, grant };
  });
}
