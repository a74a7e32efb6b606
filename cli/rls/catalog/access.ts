import {
  type DatabaseFunction,
  type Grant,
  type Oid,
  type PgRelation,
  PUBLIC,
  type Role,
  type SecurityCatalog,
} from './catalog.js';

/** Reason why row security does not apply to a role on a table. */
type Exemption = 'superuser' | 'BYPASSRLS' | 'owner';

/** Effective privileges of roles, computed from the grants and memberships of a catalog. */
export interface RolePrivileges {
  /** The role and all roles whose privileges it inherits, without SET ROLE. */
  privilegesOf(role: Oid): ReadonlySet<Oid>;
  /** The role and all roles that it can become with SET ROLE. */
  reachable(role: Oid): ReadonlySet<Oid>;
  /** True for a privilege on the whole relation with USAGE on its schema. Owners and superusers have all. */
  holds(role: Oid, privilege: string, relation: PgRelation): boolean;
  /** True for a privilege on the relation or on at least one of its columns. */
  holdsAny(role: Oid, privilege: string, relation: PgRelation): boolean;
  /** Columns on which the role has a privilege, granted on the relation or on the column itself. */
  columns(role: Oid, privilege: string, relation: PgRelation): readonly string[];
  mayExecute(role: Oid, called: DatabaseFunction): boolean;
  /** Reason why row security does not apply to the role; null if it applies where it is enabled. */
  exemption(role: Oid, table: PgRelation): Exemption | null;
}

/** Predefined roles and their privileges on every relation. They also have USAGE on every schema. */
const PREDEFINED: ReadonlyMap<string, readonly string[]> = new Map([
  ['pg_read_all_data', ['SELECT']],
  ['pg_write_all_data', ['INSERT', 'UPDATE', 'DELETE']],
]);

export function roleAccess({ roles, schemas }: SecurityCatalog): RolePrivileges {
  const privilegesOf = memoized((id: Oid) => closure(id, roles, (m) => m.inherit));
  const reachable = memoized((id: Oid) => closure(id, roles, (m) => m.set));
  const isSuperuser = (id: Oid): boolean => roles.get(id)?.superuser === true;
  const predefined = (id: Oid): readonly string[] =>
    [...privilegesOf(id)].flatMap((held) => PREDEFINED.get(roles.get(held)?.name ?? '') ?? []);
  const grants = (id: Oid, privilege: string, list: readonly Grant[]): boolean => {
    const held = privilegesOf(id);
    return list.some((g) => g.privilege === privilege && (g.grantee === PUBLIC || held.has(g.grantee)));
  };
  const mayUseSchema = (id: Oid, name: string): boolean => {
    const schema = schemas.get(name);
    if (schema === undefined) return false;
    return (
      privilegesOf(id).has(schema.owner) || grants(id, 'USAGE', schema.grants) || predefined(id).length > 0
    );
  };
  const holds = (id: Oid, privilege: string, relation: PgRelation): boolean => {
    if (isSuperuser(id)) return true;
    if (!mayUseSchema(id, relation.schema)) return false;
    if (privilegesOf(id).has(relation.owner)) return true;
    return grants(id, privilege, relation.grants) || predefined(id).includes(privilege);
  };
  const columns = (id: Oid, privilege: string, relation: PgRelation): readonly string[] => {
    const all = holds(id, privilege, relation);
    const usable = all || mayUseSchema(id, relation.schema);
    return relation.columns
      .filter((column) => all || (usable && grants(id, privilege, column.grants)))
      .map((column) => column.name);
  };
  return {
    privilegesOf,
    reachable,
    holds,
    holdsAny: (id, privilege, relation) =>
      holds(id, privilege, relation) || columns(id, privilege, relation).length > 0,
    columns,
    mayExecute: (id, called) =>
      isSuperuser(id) || privilegesOf(id).has(called.owner) || grants(id, 'EXECUTE', called.grants),
    exemption: (id, table) => {
      const role = roles.get(id);
      if (role?.superuser) return 'superuser';
      if (role?.bypassRowSecurity) return 'BYPASSRLS';
      return table.rowSecurity !== 'forced' && privilegesOf(id).has(table.owner) ? 'owner' : null;
    },
  };
}

function closure(
  start: Oid,
  roles: ReadonlyMap<Oid, Role>,
  follows: (membership: Role['memberships'][number]) => boolean,
): ReadonlySet<Oid> {
  const reached = new Set([start]);
  for (const id of reached)
    for (const membership of roles.get(id)?.memberships ?? [])
      if (follows(membership)) reached.add(membership.role);
  return reached;
}

function memoized<T>(compute: (id: Oid) => T): (id: Oid) => T {
  const known = new Map<Oid, T>();
  return (id) => {
    const value = known.get(id) ?? compute(id);
    known.set(id, value);
    return value;
  };
}
