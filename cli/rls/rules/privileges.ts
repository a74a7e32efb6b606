import { identifier } from 'osl-compiler/sql-text';
import {
  type DefaultPrivilege,
  type PgRelation,
  PUBLIC,
  qualified,
  relationObject,
} from '../catalog/catalog.js';
import { type CheckedDatabase, listed } from '../database.js';
import { type RlsRule, type Violation, violation } from '../finding.js';

/** Rules about privileges that row security does not restrict or that give more than they seem to. */
export const PRIVILEGES: readonly RlsRule[] = [
  {
    code: 'RLS025',
    severity: 'warning',
    title: 'privilege on columns beside one on the whole table',
    consequence: 'The list of columns restricts nothing: the role has the privilege on every column.',
    mend: 'revoke the privilege on the table, then grant it on the columns',
    check: (db) => db.relations.flatMap((table) => uselessColumnGrants(db, table)),
  },
  {
    code: 'RLS026',
    severity: 'note',
    title: 'readable sequence of a protected table',
    consequence: 'Its last value tells how many rows were ever inserted, those of others included.',
    mend: 'revoke SELECT on the sequence; INSERT needs USAGE only',
    check: (db) =>
      db.relations.flatMap((sequence) => {
        const table = db.protectedTables.find(({ id }) => id === sequence.sequenceOf);
        const readers = db.holders('SELECT', sequence);
        if (table === undefined || sequence.kind !== 'sequence' || readers.length === 0) return [];
        const sql = [`REVOKE SELECT ON SEQUENCE ${qualified(sequence)} FROM ${readers.join(', ')};`];
        return [violation(relationObject(sequence), `read by ${listed(readers)}`, sql)];
      }),
  },
  {
    code: 'RLS037',
    severity: 'error',
    title: 'TRUNCATE on a protected table',
    consequence: 'Row security does not apply to TRUNCATE: the role can remove the rows of all.',
    mend: 'revoke TRUNCATE',
    check: (db) => db.protectedTables.flatMap((table) => granted(db, table, ['TRUNCATE'])),
  },
  {
    code: 'RLS053',
    severity: 'warning',
    title: 'TRIGGER or REFERENCES on a protected table',
    consequence:
      'The role can add a trigger that runs with the rights of whoever writes a row, or a foreign key that tells which keys exist.',
    mend: 'revoke TRIGGER and REFERENCES',
    check: (db) => db.protectedTables.flatMap((table) => granted(db, table, ['TRIGGER', 'REFERENCES'])),
  },
  {
    code: 'RLS047',
    severity: 'warning',
    title: 'default privileges that grant SELECT on tables of the future',
    consequence: 'Each new table is readable before somebody enables row security on it.',
    mend: 'revoke the default privilege, and grant SELECT together with the policies',
    check: (db) => db.catalog.defaultPrivileges.flatMap((privilege) => futureGrant(db, privilege)),
  },
];

function granted(
  db: CheckedDatabase,
  table: PgRelation,
  privileges: readonly string[],
): readonly Violation[] {
  const held = privileges.flatMap((privilege) => {
    const roles = db.holders(privilege, table);
    return roles.length === 0 ? [] : [{ privilege, roles }];
  });
  if (held.length === 0) return [];
  const detail = held.map(({ privilege, roles }) => `${privilege}: ${listed(roles)}`).join('; ');
  const sql = held.map(
    ({ privilege, roles }) => `REVOKE ${privilege} ON ${qualified(table)} FROM ${roles.join(', ')};`,
  );
  return [violation(relationObject(table), detail, sql)];
}

function uselessColumnGrants(db: CheckedDatabase, table: PgRelation): readonly Violation[] {
  const lists = new Map<string, string[]>();
  for (const { name, grants } of table.columns)
    for (const { grantee, privilege } of grants) {
      const everyone = table.grants.some((g) => g.grantee === PUBLIC && g.privilege === privilege);
      const isChecked = grantee === PUBLIC || db.roles.some(({ id }) => id === grantee);
      if (!isChecked || !(everyone || (grantee !== PUBLIC && db.access.holds(grantee, privilege, table))))
        continue;
      const key = `${privilege} for ${db.roleName(grantee)}`;
      lists.set(key, [...(lists.get(key) ?? []), identifier(name)]);
    }
  if (lists.size === 0) return [];
  const detail = [...lists].map(([key, columns]) => `${key} on (${listed(columns)})`).join('; ');
  return [violation(relationObject(table), detail)];
}

function futureGrant(db: CheckedDatabase, privilege: DefaultPrivilege): readonly Violation[] {
  const { creator, schema, objects, grant } = privilege;
  const isChecked = grant.grantee === PUBLIC || db.roles.some(({ id }) => id === grant.grantee);
  if (objects !== 'tables' || grant.privilege !== 'SELECT' || !isChecked) return [];
  const [owner, reader] = [db.roleName(creator), db.roleName(grant.grantee)];
  const place = schema === null ? '' : ` IN SCHEMA ${identifier(schema)}`;
  return [
    violation(
      { kind: 'default privileges', identity: `FOR ROLE ${owner}${place} TO ${reader}`, schema },
      null,
      [`ALTER DEFAULT PRIVILEGES FOR ROLE ${owner}${place} REVOKE SELECT ON TABLES FROM ${reader};`],
    ),
  ];
}
