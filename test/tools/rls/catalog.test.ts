import pg from 'pg';
import t from 'tap';
import { schemasFor, searchPathOf } from '../../../cli/rls/catalog/catalog.js';
import { readCatalog } from '../../../cli/rls/catalog/read.js';
import { Sql } from '../../../src/base/sql.js';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { rowSecurityDatabase } from './row-security-database.js';

/* What the catalog says of a role's settings, and what the role gets when it logs in. */

const SCHEMAS = ['of_all', 'of_database', 'of_role', 'of_both', 'upper', 'A,b', 'say "x"', 'Spaced name'];

t.setTimeout(60_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('settings of roles', { skip: NO_NATIVE }, async () => undefined);
else {
  const names = ['plain', 'own', 'both', 'odd'];
  const { mark, admin } = await rowSecurityDatabase(postgres, names);
  const database = new URL(postgres.url).pathname.slice(1);
  const [plain, own, both, odd] = names.map((name) => `${name}_${mark}`);
  for (const schema of [...SCHEMAS, `${plain}`])
    await admin.query(
      `create schema ${pg.escapeIdentifier(schema)}; grant usage on schema ${pg.escapeIdentifier(schema)} to public`,
    );
  for (const role of [plain, own, both, odd]) await admin.query(`create role ${role} login password 'osl'`);
  await admin.query(`alter database ${database} set search_path = of_database, "$user";
    alter role ${own} set search_path = of_role;
    alter role ${both} set search_path = of_role;
    alter role ${both} in database ${database} set search_path = of_both`);
  // As the setting was written, which FROM CURRENT keeps.
  await admin.query(`set search_path = default`);
  await admin.query(`select set_config('search_path', $1, false)`, [
    ' UPPER ,"A,b","say ""x""",\t"Spaced name", "", missing',
  ]);
  await admin.query(`alter role ${odd} set search_path from current; reset search_path`);

  const pathsInCatalog = async (): Promise<Record<string, readonly string[]>> => {
    const { roles } = await readCatalog({
      query: async (statement) => (await admin.query<Record<string, unknown>>(Sql.textOf(statement))).rows,
    });
    const found = [...roles.values()].filter(({ name }) => name.endsWith(mark));
    return Object.fromEntries(
      found.map((role) => [role.name, schemasFor(role.name, searchPathOf(role) ?? [])]),
    );
  };
  const pathAtLogin = async (role: string): Promise<readonly string[]> => {
    const client = new pg.Client(urlAs(postgres.url, role, 'osl'));
    await client.connect();
    const { rows } = await client.query<{ path: string[] }>('select current_schemas(false)::text[] as path');
    await client.end();
    return rows[0]?.path ?? [];
  };
  const inTransaction = async <T>(work: () => Promise<T>): Promise<T> => {
    await admin.query('begin');
    try {
      return await work();
    } finally {
      await admin.query('rollback');
    }
  };

  t.test('the search_path is that of a login', async (t) => {
    const paths = await inTransaction(pathsInCatalog);
    for (const role of [plain, own, both, odd]) {
      const path = paths[`${role}`]?.filter((name) => name !== 'missing');
      t.strictSame(path, await pathAtLogin(`${role}`), `${role}`);
    }
    t.strictSame(paths[`${odd}`], ['upper', 'A,b', 'say "x"', 'Spaced name', 'missing']);
  });

  t.test('a setting for all roles in all databases is the last that counts', async (t) => {
    const [before, after] = await inTransaction(async () => {
      await admin.query('alter role all set search_path = of_all');
      const set = await pathsInCatalog();
      await admin.query(`alter database ${database} reset search_path`);
      return [set, await pathsInCatalog()];
    });
    t.strictSame(before?.[`${plain}`], ['of_database', plain]);
    t.strictSame(after?.[`${plain}`], ['of_all']);
    t.strictSame(after?.[`${own}`], ['of_role']);
  });
}
