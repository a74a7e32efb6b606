import pg from 'pg';
import t from 'tap';
import type { NativePostgres } from '../../support/native-postgres.js';

export interface RowSecurityDatabase {
  /** Part of the names of this test's roles, which a server has once. */
  readonly mark: string;
  readonly admin: pg.Client;
}

/**
 * Connects as superuser until the end of the test file.
 *
 * @param roles without the mark; they are dropped at the end
 */
export async function rowSecurityDatabase(
  postgres: NativePostgres,
  roles: readonly string[],
): Promise<RowSecurityDatabase> {
  const mark = new URL(postgres.url).pathname.slice(1).replaceAll(/\W/g, '');
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  t.teardown(async () => {
    await admin.end();
    await postgres.stop(roles.map((role) => `${role}_${mark}`));
  });
  return { mark, admin };
}
