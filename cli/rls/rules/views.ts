import { identifier } from 'osl-compiler/sql-text';
import type { PgRelation } from '../catalog/catalog.js';
import { columnObject, qualified, relationObject } from '../catalog/catalog.js';
import { type CheckedDatabase, listed } from '../database.js';
import { type RlsRule, violation } from '../finding.js';
import { outputsOfView } from '../statement.js';

/** Rules about views and foreign tables, which cannot have policies. */
export const VIEWS: readonly RlsRule[] = [
  {
    code: 'RLS021',
    severity: 'error',
    title: 'view that reads a protected table with the rights of an exempt owner',
    consequence:
      'Whoever may read the view sees the rows of all: row security does not apply to its owner, or to a materialized view that it reads.',
    mend: 'set security_invoker (Postgres 15 and newer), or give the view to an owner that row security applies to',
    check: (db) =>
      viewsOf(db, 'view').flatMap((view) => {
        const [shown, readers] = [exposedBy(db, view), db.holders('SELECT', view)];
        if (shown.length === 0 || readers.length === 0) return [];
        const isSettable = db.catalog.server.number >= 150_000 && view.view?.securityInvoker === false;
        const sql = isSettable ? [`ALTER VIEW ${qualified(view)} SET (security_invoker = true);`] : [];
        const detail = `shows ${listed(shown.map(qualified))} to ${listed(readers)}`;
        return [violation(relationObject(view), detail, sql)];
      }),
  },
  {
    code: 'RLS022',
    severity: 'error',
    title: 'materialized view of a protected table',
    consequence:
      'It holds the rows that its owner saw at the last refresh, and shows them all to whoever may read it.',
    mend: 'revoke SELECT on it, and give access by a view with a condition of its own',
    check: (db) =>
      viewsOf(db, 'materialized view').flatMap((view) => {
        const [sources, readers] = [tablesBehind(db, view), db.holders('SELECT', view)];
        const shown = sources.filter((table) => table.rowSecurity !== 'off');
        if (shown.length === 0 || readers.length === 0) return [];
        const sql = readers.map((role) => `REVOKE SELECT ON ${qualified(view)} FROM ${role};`);
        const detail = `shows ${listed(shown.map(qualified))} to ${listed(readers)}`;
        return [violation(relationObject(view), detail, sql)];
      }),
  },
  {
    code: 'RLS040',
    severity: 'warning',
    title: 'foreign table beside protected tables',
    consequence:
      'There is no row security for foreign tables: whoever may read it sees all that the other server shows.',
    mend: 'revoke SELECT on it and give access by a view with a condition, or protect the rows on the other server',
    check: (db) =>
      db.protectedTables.length === 0
        ? []
        : db.relations.flatMap((table) => {
            const readers = table.kind === 'foreign table' ? db.holders('SELECT', table) : [];
            if (readers.length === 0) return [];
            const sql = readers.map((role) => `REVOKE SELECT ON ${qualified(table)} FROM ${role};`);
            return [violation(relationObject(table), `read by ${listed(readers)}`, sql)];
          }),
  },
  {
    code: 'RLS050',
    severity: 'warning',
    title: 'column that a view changes and that is readable in its table',
    consequence: 'Roles that may read the view read the original value in the table.',
    mend: 'revoke SELECT on the table and grant it for the other columns, if the view is meant to mask the value',
    check: (db) => viewsOf(db, 'view').flatMap((view) => maskedColumns(db, view)),
  },
];

function viewsOf({ relations }: CheckedDatabase, kind: PgRelation['kind']): readonly PgRelation[] {
  return relations.filter((relation) => relation.kind === kind);
}

function readsOf({ catalog }: CheckedDatabase, { view }: PgRelation): readonly PgRelation[] {
  return (view?.reads ?? []).flatMap((id) => catalog.relations.get(id) ?? []);
}

/** Protected tables that a view shows without their policies. Nested views have the rights of their own owners. */
export function exposedBy(
  db: CheckedDatabase,
  view: PgRelation,
  seen: ReadonlySet<PgRelation> = new Set(),
): readonly PgRelation[] {
  if (seen.has(view)) return [];
  const within = new Set([...seen, view]);
  const exposed = readsOf(db, view).flatMap((read) => {
    if (read.kind === 'view') return exposedBy(db, read, within);
    if (view.view?.securityInvoker !== false) return [];
    if (read.kind === 'materialized view')
      return tablesBehind(db, read).filter((table) => table.rowSecurity !== 'off');
    if (read.rowSecurity === 'off') return [];
    return db.access.exemption(view.owner, read) === null ? [] : [read];
  });
  return [...new Set(exposed)];
}

/** Tables that a view reads, directly or through views; for a table, the table itself. */
export function tablesBehind(db: CheckedDatabase, view: PgRelation): readonly PgRelation[] {
  const seen = new Set([view]);
  for (const relation of seen) for (const read of readsOf(db, relation)) seen.add(read);
  return [...seen].filter(({ view }) => view === null);
}

function maskedColumns(db: CheckedDatabase, view: PgRelation) {
  const outputs = (outputsOfView(view.view?.definition ?? '') ?? []).filter((output) => !output.isPlain);
  return readsOf(db, view).flatMap((table) =>
    outputs.flatMap(({ name, columns }) => {
      if (!columns.has(name) || table.view !== null || !table.columns.some((c) => c.name === name)) return [];
      const readers = db.roles.filter(
        (role) =>
          !db.access.privilegesOf(role.id).has(table.owner) &&
          db.access.holds(role.id, 'SELECT', view) &&
          db.access.columns(role.id, 'SELECT', table).includes(name),
      );
      if (readers.length === 0) return [];
      const names = readers.map((role) => identifier(role.name));
      const detail = `changed in ${qualified(view)}, read by ${listed(names)}`;
      return [violation(columnObject(table, name), detail)];
    }),
  );
}
