import type { Relation } from '../catalog/catalog.js';
import { type AnalysedPolicy, type CheckedDatabase, governs, listed } from '../checked-database.js';
import type { Rule } from '../finding.js';
import { qualified, relationObject } from '../identity.js';

/** Tables whose row security or policies are missing, so that they show all rows or none. */
export const COVERAGE: readonly Rule[] = [
  {
    code: 'RLS001',
    severity: 'warning',
    title: 'table without row security beside protected tables',
    consequence: 'Each role that may read the table reads all its rows.',
    mend: 'enable row security and write a policy, or ignore the rule if everyone may see the table',
    check: (db) => {
      const schemas = new Set(db.protectedTables.map(({ schema }) => schema));
      return tables(db).flatMap((table) => {
        const readers = db.holders('SELECT', table);
        if (table.rowSecurity !== 'off' || table.policies.length > 0) return [];
        if (table.parents.length > 0 || !schemas.has(table.schema) || readers.length === 0) return [];
        return [
          { object: relationObject(table), detail: `read by ${listed(readers)}`, sql: [enable(table)] },
        ];
      });
    },
  },
  {
    code: 'RLS002',
    severity: 'warning',
    title: 'row security without a policy',
    consequence: 'Roles with privileges on the table see no row and change none, without an error.',
    mend: 'write a policy, or revoke the privileges',
    check: (db) =>
      db.protectedTables.flatMap((table) => {
        const readers = db.holders('SELECT', table);
        if (table.policies.length > 0 || readers.length === 0) return [];
        return [{ object: relationObject(table), detail: `granted to ${listed(readers)}`, sql: [] }];
      }),
  },
  {
    code: 'RLS003',
    severity: 'error',
    title: 'policies on a table whose row security is disabled',
    consequence: 'The policies have no effect, and all rows are shown.',
    mend: 'enable row security',
    check: (db) =>
      tables(db)
        .filter((table) => table.rowSecurity === 'off' && table.policies.length > 0)
        .map((table) => ({ object: relationObject(table), detail: null, sql: [enable(table)] })),
  },
  {
    code: 'RLS010',
    severity: 'warning',
    title: 'only restrictive policies',
    consequence: 'No row is shown, because restrictive policies only reduce what permissive ones show.',
    mend: 'write a permissive policy, or make one of these permissive',
    check: (db) =>
      db.protectedTables
        .filter(({ policies }) => policies.length > 0 && policies.every((policy) => !policy.permissive))
        .map((table) => ({ object: relationObject(table), detail: null, sql: [] })),
  },
  {
    code: 'RLS011',
    severity: 'warning',
    title: 'UPDATE or DELETE policy without a SELECT policy',
    consequence:
      'UPDATE and DELETE with a condition or RETURNING change no row, because they must read it first.',
    mend: 'write a SELECT policy for the same roles',
    check: (db) =>
      db.protectedTables.flatMap((table) => {
        const policies = db.policiesOf(table).filter(({ policy }) => policy.permissive);
        const writing = policies.filter(({ policy }) => ['UPDATE', 'DELETE'].includes(policy.command));
        const unread = writing.filter(
          ({ policy }) => !policies.some((other) => reads(db, other, policy.roles)),
        );
        if (unread.length === 0) return [];
        const names = unread.map(({ policy }) => policy.name);
        return [{ object: relationObject(table), detail: `policies ${listed(names)}`, sql: [] }];
      }),
  },
];

/** True if the policy shows rows to at least one of the roles. */
function reads(db: CheckedDatabase, { policy }: AnalysedPolicy, roles: readonly number[]): boolean {
  if (!governs(policy, 'SELECT')) return false;
  return roles.some((role) => policy.roles.some((id) => id === 0 || db.access.privilegesOf(role).has(id)));
}

function tables({ relations }: CheckedDatabase): readonly Relation[] {
  return relations.filter(({ kind }) => kind === 'table' || kind === 'partitioned table');
}

function enable(table: Relation): string {
  return `ALTER TABLE ${qualified(table)} ENABLE ROW LEVEL SECURITY;`;
}
