import { sql } from '../../../src/base/sql.js';
import type { DefaultPrivilege, Oid, Role, Schema } from './catalog.js';
import { type CatalogRow, flagIn, grantsIn, groupBy, numberIn, textIn, textOrNull, textsIn } from './row.js';

export const ROLES = sql`
  select r.oid::int8 as id, r.rolname::text as name, r.rolcanlogin as login, r.rolsuper as super,
         r.rolbypassrls as bypass, r.rolcreaterole as create_role, r.rolreplication as replication,
         coalesce((select array_agg(setting) from pg_catalog.pg_db_role_setting s, unnest(s.setconfig) as setting
                    where s.setrole in (r.oid, 0)
                      and s.setdatabase in (0, (select oid from pg_catalog.pg_database
                                                 where datname = pg_catalog.current_database()))),
                  '{}') as settings
    from pg_catalog.pg_roles r
   order by r.rolname`;

/** Before Postgres 16 a membership has no options of its own: INHERIT is an attribute of the member. */
export const MEMBERSHIPS = sql`
  select m.member::int8 as member, m.roleid::int8 as role,
         coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, r.rolinherit) as inherit,
         coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) as set
    from pg_catalog.pg_auth_members m join pg_catalog.pg_roles r on r.oid = m.member
   union all
  select d.datdba::int8, o.oid::int8, true, true
    from pg_catalog.pg_database d, pg_catalog.pg_roles o
   where d.datname = pg_catalog.current_database() and o.rolname = 'pg_database_owner'
   order by 1, 2`;

export const SCHEMAS = sql`
  select n.nspname::text as name, n.nspowner::int8 as owner,
         (select coalesce(json_agg(json_build_object('grantee', a.grantee::int8, 'privilege', a.privilege_type)), '[]')
            from pg_catalog.aclexplode(coalesce(n.nspacl, pg_catalog.acldefault('n', n.nspowner))) a) as grants
    from pg_catalog.pg_namespace n
   where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
   order by 1`;

export const DEFAULT_PRIVILEGES = sql`
  select d.defaclrole::int8 as creator, n.nspname::text as schema, d.defaclobjtype::text as objects,
         a.grantee::int8 as grantee, a.privilege_type as privilege
    from pg_catalog.pg_default_acl d
    left join pg_catalog.pg_namespace n on n.oid = d.defaclnamespace
   cross join pg_catalog.aclexplode(d.defaclacl) a
   where a.grantee <> d.defaclrole
   order by 1, 2, 3, 4, 5`;

export function decodeRoles(
  rows: readonly CatalogRow[],
  memberships: readonly CatalogRow[],
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

export function decodeSchemas(rows: readonly CatalogRow[]): ReadonlyMap<string, Schema> {
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

export function decodeDefaultPrivileges(rows: readonly CatalogRow[]): readonly DefaultPrivilege[] {
  return rows.map((row) => {
    const objects = OBJECTS.get(textIn(row, 'objects'));
    if (objects === undefined) throw new TypeError(`unknown objects of default privileges`);
    const grant = { grantee: numberIn(row, 'grantee'), privilege: textIn(row, 'privilege') };
    return { creator: numberIn(row, 'creator'), schema: textOrNull(row, 'schema'), objects, grant };
  });
}
