import type { Relation } from '../catalog/catalog.js';
import { type CheckedDatabase, listed } from '../checked-database.js';
import type { Rule } from '../finding.js';
import { qualified, relationObject } from '../identity.js';
import { contentOf } from './unused-policies.js';

/** Partitions and inheriting tables, to which policies of the parent do not apply when they are named themselves. */
export const PARTITIONS: readonly Rule[] = [
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
          return { object: relationObject(child), detail, sql };
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
        .map(({ child, parent }) => {
          return { object: relationObject(child), detail: `child of ${qualified(parent)}`, sql: [] };
        }),
  },
];

interface ReadableChild {
  readonly child: Relation;
  readonly parent: Relation;
  readonly readers: readonly string[];
}

function readableChildren(db: CheckedDatabase): readonly ReadableChild[] {
  return db.relations.flatMap((child) => {
    const parent = ancestorsOf(db, child).find(({ rowSecurity }) => rowSecurity !== 'off');
    const readers = parent === undefined ? [] : db.holders('SELECT', child);
    return parent === undefined || readers.length === 0 ? [] : [{ child, parent, readers }];
  });
}

/** Nearest first. */
function ancestorsOf({ catalog }: CheckedDatabase, child: Relation): readonly Relation[] {
  const seen = new Set([child]);
  for (const { parents } of seen)
    for (const id of parents) {
      const parent = catalog.relations.get(id);
      if (parent !== undefined) seen.add(parent);
    }
  return [...seen].slice(1);
}

function policiesOf({ policies }: Relation): string {
  return JSON.stringify([...new Set(policies.map(contentOf))].sort());
}
