import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { Client } from 'pg';
import type { Test } from 'tap';
import {
  type ControlDatabase,
  type ControlPlace,
  migrate,
  openControl,
} from '../../src/base/control/index.js';
import { type NativePostgres, NO_NATIVE, startNativePostgres, urlAs } from '../support/native-postgres.js';

/** A database to share, with the roles that docs/operations.md asks for. */
export interface ControlHouse {
  readonly postgres: NativePostgres;
  /** As its owner: nothing is migrated yet. */
  readonly owner: string;
  readonly gateway: string;
  readonly author: string;
  readonly roles: { readonly gateway: string; readonly author: string };
  /** Runs a statement as a superuser. */
  admin(sql: string): Promise<readonly Record<string, unknown>[]>;
}

const HAS_NATIVE = (process.env['OSL_TEST_POSTGRES_URL'] ?? '') !== '' || existsSync('/usr/lib/postgresql');

/** Why tests of the control database do not run; false where they do. */
export const SKIP = HAS_NATIVE ? false : NO_NATIVE;

/** A database of its own on `server`, and three roles that are dropped with it. */
export async function controlHouse(
  t: Pick<Test, 'teardown'>,
  server: NativePostgres | null = null,
): Promise<ControlHouse> {
  const postgres = server ?? (await startNativePostgres());
  if (postgres === null) throw new Error(NO_NATIVE);
  const mark = randomBytes(5).toString('hex');
  const roles = { owner: `osl_o_${mark}`, gateway: `osl_g_${mark}`, author: `osl_a_${mark}` };
  let admin: Client | null = null;
  // A server that is killed takes the connection with it.
  const run = async (sql: string): Promise<readonly Record<string, unknown>[]> => {
    if (admin === null) {
      const client = new Client(postgres.url);
      client.on('error', () => undefined);
      client.on('end', () => {
        admin = null;
      });
      await client.connect();
      admin = client;
    }
    return (await admin.query<Record<string, unknown>>(sql)).rows;
  };
  for (const role of Object.values(roles)) await run(`create role ${role} login password 'osl'`);
  const database = new URL(postgres.url).pathname.slice(1);
  await run(`grant create on database ${database} to ${roles.owner}`);
  t.teardown(async () => {
    for (const role of Object.values(roles)) await run(`drop owned by ${role} cascade`);
    for (const role of Object.values(roles)) await run(`drop role ${role}`);
    await admin?.end();
    await postgres.stop();
  });
  const as = (role: string): string => urlAs(postgres.url, role, 'osl');
  return {
    postgres,
    owner: as(roles.owner),
    gateway: as(roles.gateway),
    author: as(roles.author),
    roles,
    admin: run,
  };
}

/** Opened for as long as the test runs. */
export function opened(t: Pick<Test, 'teardown'>, url: string): ControlDatabase {
  const database = openControl(placeOf(url));
  t.teardown(() => database.close());
  return database;
}

export function placeOf(url: string): ControlPlace {
  return { url };
}

/** The schema as its owner makes it, with the roles granted. */
export async function migrated(house: ControlHouse): Promise<void> {
  const database = openControl(placeOf(house.owner));
  const { gateway, author } = house.roles;
  await migrate(database, { gateway: [gateway], author: [author] });
  await database.close();
}

/** Waits for what must come; the test's own time ends it. */
export async function until(is: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await is())) await new Promise((done) => setTimeout(done, 20));
}
