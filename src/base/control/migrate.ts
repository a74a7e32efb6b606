import { type Sql, sql, sqlName } from '../sql.js';
import type { ControlDatabase, ControlQueries } from './database.js';
import { ControlFault, controlFault } from './fault.js';
import { MIGRATIONS, type Migration } from './migrations.js';

/** Database roles to grant privileges to, by kind. */
export interface ControlRoles {
  readonly gateway: readonly string[];
  readonly author: readonly string[];
}

export interface MigrationResult {
  readonly ran: readonly Migration[];
  /** Number of the newest step in the database, which may be newer than this gateway. */
  readonly stands: number;
}

/**
 * Migrates the schema `osl_control` in one transaction, and grants the roles their privileges.
 *
 * @throws ControlFault, e.g. if the role may not create the schema, or a named role does not exist
 */
export function migrate(database: ControlDatabase, roles: ControlRoles): Promise<MigrationResult> {
  return database.transaction('migrate', async (tx) => {
    const stands = await standing(tx);
    if (stands === null) {
      await tx.query(sql`create schema if not exists osl_control`);
      await tx.query(
        sql`create table osl_control.migration (
           number integer primary key, name text not null, at timestamptz not null default now())`,
      );
    }
    const ran = MIGRATIONS.filter(({ number }) => number > (stands ?? 0));
    for (const { number, name, script } of ran) {
      await tx.query(script);
      await tx.query(sql`insert into osl_control.migration (number, name) values ($1, $2)`, [number, name]);
    }
    await grant(tx, roles);
    return { ran, stands: Math.max(stands ?? 0, ...MIGRATIONS.map(({ number }) => number)) };
  });
}

/** Checks that the schema is up to date; migrates it if the role may. @throws ControlFault with instructions */
export async function requireSchema(database: ControlDatabase): Promise<void> {
  const newest = Math.max(...MIGRATIONS.map(({ number }) => number));
  const [found] = await database.query(
    sql`select to_regclass('osl_control.migration') is not null as made,
            coalesce(has_schema_privilege(to_regnamespace('osl_control'), 'create'),
                     has_database_privilege(current_database(), 'create')) as may`,
  );
  if (found?.['made'] === true) {
    const [at] = await database.query(sql`select max(number) as number from osl_control.migration`);
    if (Number(at?.['number'] ?? 0) >= newest) return;
  }
  if (found?.['may'] !== true)
    throw new ControlFault(
      'the control database: the schema osl_control is missing or older than this gateway: run `osl control migrate` as its owner',
      null,
    );
  await migrate(database, { gateway: [], author: [] });
}

async function standing(tx: ControlQueries): Promise<number | null> {
  const [found] = await tx.query(sql`select to_regclass('osl_control.migration') is not null as made`);
  if (found?.['made'] !== true) return null;
  const [newest] = await tx.query(sql`select max(number) as number from osl_control.migration`);
  return Number(newest?.['number'] ?? 0);
}

async function grant(tx: ControlQueries, roles: ControlRoles): Promise<void> {
  for (const kind of ['gateway', 'author'] as const) {
    for (const role of roles[kind]) {
      const name = quoted(role);
      await tx.query(sql`grant usage on schema osl_control to ${name}`);
      await tx.query(sql`grant select on osl_control.migration to ${name}`);
      for (const { tables } of MIGRATIONS)
        for (const [table, rights] of Object.entries(tables)) {
          const granted = rights[kind];
          if (granted !== null)
            await tx.query(sql`grant ${granted} on osl_control.${sqlName(table)} to ${name}`);
        }
    }
  }
}

function quoted(role: string): Sql {
  if (role === '' || role.includes('\0') || Buffer.byteLength(role) > 63)
    throw controlFault(new Error(`no name of a role: ${JSON.stringify(role)}`));
  return sqlName(role);
}
