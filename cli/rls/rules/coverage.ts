import { identifier } from 'osl-compiler/sql-text';
import { type PgRelation, qualified, relationObject } from '../catalog/catalog.js';
import { ancestorsOf, type CheckedDatabase, governs, listed } from '../database.js';
import { type RlsRule, violation } from '../finding.js';
import { contentOf } from './unused-policies.js';

/** Rules about tables that show all rows or none because row security or policies are missing. */
export const COVERAGE: readonly RlsRule[] = [
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
        return [violation(relationObject(table), `read by ${listed(readers)}`, [enable(table)])];
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
        return [violation(relationObject(table), `granted to ${listed(readers)}`)];
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
        .map((table) => violation(relationObject(table), null, [enable(table)])),
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
        .map((table) => violation(relationObject(table))),
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
        const permissive = db.policiesOf(table).filter(({ policy }) => policy.permissive);
        const reading = permissive.filter(({ policy }) => governs(policy, 'SELECT'));
        const unread = permissive.filter(
          (analysed) =>
            ['UPDATE', 'DELETE'].includes(analysed.policy.command) &&
            db
              .affectedRoles(analysed)
              .filter((role) => db.access.holdsAny(role.id, 'SELECT', table))
              .some((role) => !reading.some(({ policy }) => db.isFor(policy, role))),
        );
        if (unread.length === 0) return [];
        const names = unread.map(({ policy }) => policy.name);
        return [violation(relationObject(table), `policies ${listed(names)}`)];
      }),
  },
];

function tables({ relations }: CheckedDatabase): readonly PgRelation[] {
  return relations.filter(({ kind }) => kind === 'table' || kind === 'partitioned table');
}

function enable(table: PgRelation): string {
  return `ALTER TABLE ${qualified(table)} ENABLE ROW LEVEL SECURITY;`;
}

/** Rules about partitions and inheriting tables: a query that names such a table bypasses its parent's policies. */
export const PARTITIONS: readonly RlsRule[] = [
  {
    code: 'RLS030',
    severity: 'error',
    title: 'partition or child of a protected table, without row security',
    consequence:
      'Whoever names the child itself reads all its rows: the policies of the parent do not apply.',
    mend: 'revoke the privileges on the child; queries on the parent do not need them',
    check: (db) =>
      readableChildren(db)
        .filter(({ child }) => child.rowSecurity === 'off')
        .map(({ child, parent, readers }) => {
          const sql = [`REVOKE ALL ON ${qualified(child)} FROM ${readers.join(', ')};`];
          const detail = `child of ${qualified(parent)}, read by ${listed(readers)}`;
          return violation(relationObject(child), detail, sql);
        }),
  },
  {
    code: 'RLS031',
    severity: 'warning',
    title: 'partition or child whose policies differ from those of its parent',
    consequence: 'The same row is visible or not, depending on which of the two tables a query names.',
    mend: 'give both the same policies, or revoke the privileges on the child',
    check: (db) =>
      readableChildren(db)
        .filter(
          ({ child, parent }) => child.rowSecurity !== 'off' && policiesOf(child) !== policiesOf(parent),
        )
        .map(({ child, parent }) => violation(relationObject(child), `child of ${qualified(parent)}`)),
  },
];

interface ReadableChild {
  readonly child: PgRelation;
  readonly parent: PgRelation;
  readonly readers: readonly string[];
}

function readableChildren(db: CheckedDatabase): readonly ReadableChild[] {
  return db.relations.flatMap((child) => {
    const parent = ancestorsOf(db.catalog, child).find(({ rowSecurity }) => rowSecurity !== 'off');
    const readers = parent === undefined ? [] : db.holders('SELECT', child);
    return parent === undefined || readers.length === 0 ? [] : [{ child, parent, readers }];
  });
}

/** Content of all policies of a table. In subqueries, Postgres prints the table's name before its columns. */
function policiesOf({ name, policies }: PgRelation): string {
  const own = identifier(name).replace(/[^\w]/g, '\\$&');
  const prefix = new RegExp(String.raw`(?<![\w$".])${own}\.`, 'g');
  const contents = policies.map(({ using, check, ...policy }) =>
    contentOf({
      ...policy,
      using: using?.replace(prefix, '') ?? null,
      check: check?.replace(prefix, '') ?? null,
    }),
  );
  return JSON.stringify([...new Set(contents)].sort());
}
