import { identifier } from 'osl-compiler/sql-text';
import type { Index, PgColumn, PgForeignKey, PgRelation } from '../catalog/catalog.js';
import { partOf, qualified } from '../catalog/catalog.js';
import { ancestorsOf, type CheckedDatabase, governs, listed } from '../database.js';
import { type RlsRule, violation } from '../finding.js';

/** Rules about ways to infer hidden rows although no query shows them. */
export const CHANNELS: readonly RlsRule[] = [
  {
    code: 'RLS027',
    severity: 'note',
    title: 'unique key of a protected table without the column of its policies',
    consequence: 'An insert that fails with 23505 tells that a hidden row has the value.',
    mend: 'add the column of the policies to the key, or accept that values can be probed',
    check: (db) =>
      db.protectedTables.flatMap((table) => {
        const columns = policyColumns(db, table);
        if (columns.size === 0 || writers(db, table).length === 0) return [];
        return table.indexes
          .filter((index) => index.unique && !index.keys.some((key) => columns.has(key.column ?? '')))
          .filter((index) => !isGenerated(table, index))
          .map((index) =>
            violation(
              partOf(
                index.constraint === null ? 'index' : 'constraint',
                table,
                index.constraint ?? index.name,
              ),
              `key (${index.keys.map(({ text }) => text).join(', ')})`,
            ),
          );
      }),
  },
  {
    code: 'RLS028',
    severity: 'note',
    title: 'foreign key to a protected table',
    consequence:
      'The database checks it without row security, so that an insert tells whether a hidden row exists.',
    mend: 'add the column of the policies to both keys, or check in WITH CHECK that the row is visible',
    check: (db) =>
      db.relations.flatMap((table) =>
        table.foreignKeys.flatMap((key) => {
          const target = db.catalog.relations.get(key.references);
          if (target === undefined || target.rowSecurity === 'off') return [];
          if (writers(db, table).length === 0) return [];
          if (isPinned(db, target, key) || isChecked(db, table, target)) return [];
          const detail = `references ${qualified(target)}`;
          return [violation(partOf('constraint', table, key.name), detail)];
        }),
      ),
  },
  {
    code: 'RLS041',
    severity: 'warning',
    title: 'protected table in a publication',
    consequence: 'Row security does not apply to logical replication: subscribers get the rows of all.',
    mend: 'publish the table with a WHERE (Postgres 15 and newer), or take it out of the publication',
    check: (db) =>
      db.catalog.publications.flatMap(({ name, tables }) => {
        const published = tables.flatMap(({ relation: id, filtered }) => {
          const table = filtered ? undefined : db.catalog.relations.get(id);
          return table === undefined ? [] : [table, ...ancestorsOf(db.catalog, table)];
        });
        const open = db.protectedTables.filter((table) => published.includes(table));
        if (open.length === 0) return [];
        const detail = `publishes ${listed(open.map(qualified))}`;
        return [
          violation({ kind: 'publication' as const, identity: identifier(name), schema: null }, detail),
        ];
      }),
  },
];

/** Columns of the table that its policies read. */
function policyColumns(db: CheckedDatabase, table: PgRelation): ReadonlySet<string> {
  return new Set(db.policiesOf(table).flatMap(({ parsed }) => parsed.flatMap((e) => [...e.columns])));
}

function writers(db: CheckedDatabase, table: PgRelation): readonly string[] {
  return [...db.holders('INSERT', table), ...db.holders('UPDATE', table)];
}

/** True if all columns of the key are generated or uuids, so that a duplicate-key error reveals little. */
function isGenerated(table: PgRelation, { keys }: Index): boolean {
  return keys.every((key) => {
    const column = table.columns.find(({ name }) => name === key.column);
    return column !== undefined && isSurrogate(column);
  });
}

function isSurrogate({ identity, type, default: initial }: PgColumn): boolean {
  return identity || type === 'uuid' || /\bnextval\(|uuid/.test(initial ?? '');
}

/** True if the foreign key has several columns and the target's policies read one of them, as in `(tenant, id)`. */
function isPinned(db: CheckedDatabase, target: PgRelation, { referencedColumns }: PgForeignKey): boolean {
  const columns = policyColumns(db, target);
  return referencedColumns.length > 1 && referencedColumns.some((column) => columns.has(column));
}

/** True if every permissive INSERT policy queries the referenced table, and so can check that the row is visible. */
function isChecked(db: CheckedDatabase, table: PgRelation, target: PgRelation): boolean {
  const inserting = db
    .policiesOf(table)
    .filter(({ policy }) => policy.permissive && governs(policy, 'INSERT'));
  return (
    table.rowSecurity !== 'off' &&
    inserting.length > 0 &&
    inserting.every(({ parsed }) =>
      parsed.some(({ subqueries }) =>
        subqueries.some(({ relations }) => relations.some((name) => db.relationNamed(name) === target)),
      ),
    )
  );
}
