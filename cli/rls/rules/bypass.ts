import { identifier } from 'osl-compiler/sql-text';
import type { Role } from '../catalog/catalog.js';
import { qualified, relationObject, roleNames, roleObject } from '../catalog/catalog.js';
import { type CheckedDatabase, listed } from '../database.js';
import { policiesWith, type RlsRule, type Violation, violation } from '../finding.js';

/** Rules about roles to which row security does not apply or that can bypass it. */
export const BYPASS: readonly RlsRule[] = [
  {
    code: 'RLS004',
    severity: 'warning',
    title: 'owner of the table can log in, and row security is not forced',
    consequence:
      'A session of the owner, or of a role that inherits its privileges, sees and changes all rows.',
    mend: 'let applications log in as another role, or force row security',
    check: (db) =>
      db.protectedTables.flatMap((table) => {
        if (table.rowSecurity !== 'enabled') return [];
        const owners = db.roles.filter(
          (role) => isOrdinaryLogin(role) && db.access.privilegesOf(role.id).has(table.owner),
        );
        if (owners.length === 0) return [];
        const sql = [`ALTER TABLE ${qualified(table)} FORCE ROW LEVEL SECURITY;`];
        return [violation(relationObject(table), `owner: ${listed(roleNames(owners))}`, sql)];
      }),
  },
  {
    code: 'RLS005',
    severity: 'warning',
    title: 'login role with BYPASSRLS',
    consequence: 'No policy applies to a session that uses the attribute, directly or after SET ROLE.',
    mend: 'take the attribute or the membership away, or let only administrators log in as the role',
    check: (db) => loginsThat(db, (role) => role.bypassRowSecurity, 'BYPASSRLS'),
  },
  {
    code: 'RLS006',
    severity: 'warning',
    title: 'policy for a role that row security does not apply to',
    consequence: 'The policy has no effect for this role, which sees all rows.',
    mend: 'write the policy for the role of the application, without SUPERUSER and BYPASSRLS',
    check: (db) =>
      policiesWith(db, 'roles ', ({ policy }) => {
        const roles = policy.roles.flatMap((id) => db.catalog.roles.get(id) ?? []);
        return roleNames(roles.filter((role) => role.superuser || role.bypassRowSecurity));
      }),
  },
  {
    code: 'RLS029',
    severity: 'error',
    title: 'login role with access to files or programs of the server',
    consequence: 'The role reads or replaces files of the database server, the table files among them.',
    mend: 'revoke the predefined role',
    check: (db) =>
      membersOf(db, ['pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program']),
  },
  {
    code: 'RLS039',
    severity: 'warning',
    title: 'role with row_security = off',
    consequence: 'Queries of the role on tables with row security fail; the setting shows no row.',
    mend: 'reset the setting; it is for dumps by a role that row security does not apply to',
    check: (db) =>
      db.roles
        .filter(isOrdinaryLogin) // the settings of a role take effect at login, not by SET ROLE
        .filter(({ settings }) => settings.some((setting) => ROW_SECURITY_OFF.test(setting)))
        .map((role) => {
          // This takes precedence over the settings of the role and of the database, whichever of them it is.
          const scope = `${identifier(role.name)} IN DATABASE ${identifier(db.catalog.database)}`;
          return violation(roleObject(role), null, [`ALTER ROLE ${scope} SET row_security = on;`]);
        }),
  },
  {
    code: 'RLS051',
    severity: 'warning',
    title: 'login role with REPLICATION',
    consequence: 'If pg_hba.conf lets the role replicate, it can copy the whole database cluster.',
    mend: 'use a role of its own for replication',
    check: (db) => loginsThat(db, (role) => role.replication, 'REPLICATION'),
  },
  {
    code: 'RLS052',
    severity: 'warning',
    title: 'login role with pg_read_all_data or pg_write_all_data',
    consequence:
      'The role has the privilege on each table that has no row security, whatever is revoked from it.',
    mend: 'grant the privileges on single schemas or tables instead',
    check: (db) => membersOf(db, ['pg_read_all_data', 'pg_write_all_data']),
  },
  {
    code: 'RLS054',
    severity: 'warning',
    title: 'login role with CREATEROLE before Postgres 16',
    consequence:
      'The role can grant itself any role that is not a superuser, the owners of tables among them.',
    mend: 'upgrade to Postgres 16, where this needs ADMIN OPTION, or take the attribute away',
    check: (db) =>
      db.catalog.server.number >= 160_000 ? [] : loginsThat(db, (role) => role.createRole, 'CREATEROLE'),
  },
];

/** Postgres accepts each unique prefix of a boolean word. */
const ROW_SECURITY_OFF = /^row_security=(of|off|f|fa|fal|fals|false|n|no|0)$/i;

function isOrdinaryLogin(role: Role): boolean {
  return role.login && !role.superuser && !role.bypassRowSecurity;
}

/** Login roles, except superusers, that have an attribute or can become a role that has it. */
function loginsThat(
  db: CheckedDatabase,
  has: (role: Role) => boolean,
  attribute: string,
): readonly Violation[] {
  return db.roles
    .filter((role) => role.login && !role.superuser)
    .flatMap((role) => {
      const reached = [...db.access.reachable(role.id)].flatMap((id) => db.catalog.roles.get(id) ?? []);
      const holders = reached.filter(has);
      if (holders.length === 0) return [];
      const own = has(role);
      const detail = own ? null : `by SET ROLE ${listed(roleNames(holders))}`;
      const sql = own ? [`ALTER ROLE ${identifier(role.name)} NO${attribute};`] : [];
      return [violation(roleObject(role), detail, sql)];
    });
}

/** Login roles, except superusers, that have the privileges of predefined roles or can become one of them. */
function membersOf(db: CheckedDatabase, predefined: readonly string[]): readonly Violation[] {
  return db.roles
    .filter((role) => role.login && !role.superuser)
    .flatMap((role) => {
      // Since Postgres 16, a role reached by SET ROLE may have privileges of another that it may not become.
      const reached = [...db.access.reachable(role.id)].flatMap((id) => [...db.access.privilegesOf(id)]);
      const names = new Set(reached.map((id) => db.catalog.roles.get(id)?.name));
      const held = predefined.filter((name) => names.has(name));
      if (held.length === 0) return [];
      const direct = role.memberships.map((m) => db.catalog.roles.get(m.role)?.name);
      const sql = held
        .filter((name) => direct.includes(name))
        .map((name) => `REVOKE ${name} FROM ${identifier(role.name)};`);
      return [violation(roleObject(role), `member of ${held.join(', ')}`, sql)];
    });
}
