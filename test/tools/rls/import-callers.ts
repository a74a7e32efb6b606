import type pg from 'pg';
import type { SecurityCatalog } from '../../../cli/rls/catalog/catalog.js';
import type { CallerAttribute } from '../../../cli/rls/import/caller-value.js';
import { FIXTURES, type RlsFixture } from './import-fixtures.js';

export interface Caller {
  readonly name: string;
  readonly role: 'auth' | 'anon';
  readonly settings: Readonly<Record<string, string>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

const ANN = '11111111-1111-4111-8111-111111111111';
const BOB = '22222222-2222-4222-8222-222222222222';

export const CALLERS: readonly Caller[] = [
  { name: 'nobody', role: 'anon', settings: {}, claims: {} },
  { name: 'no-claims', role: 'auth', settings: {}, claims: {} },
  {
    name: 'ann',
    role: 'auth',
    settings: { 'app.current_tenant': ANN, 'app.tenants': `${ANN},${BOB}` },
    claims: {
      sub: ANN,
      email: 'ann@example.org',
      aal: 'aal1',
      user_role: 'staff',
      role: 'authenticated',
      app_metadata: { org_id: ANN, teams: ['1', '2'] },
    },
  },
  {
    name: 'bob',
    role: 'auth',
    settings: { 'app.current_tenant': BOB, 'app.bypass_rls': 'on', 'app.tenants': BOB },
    claims: {
      sub: BOB,
      email: 'bob@example.org',
      aal: 'aal2',
      user_role: 'guest',
      role: 'service_role',
      app_metadata: { org_id: BOB, teams: [] },
    },
  },
  {
    name: 'stranger',
    role: 'auth',
    settings: { 'app.bypass_rls': 'off' },
    claims: { sub: '33333333-3333-4333-8333-333333333333' },
  },
];

const AUTH = `
create schema auth;
create function auth.jwt() returns jsonb language sql stable as
  $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $$;
create function auth.uid() returns uuid language sql stable as $$ select (auth.jwt() ->> 'sub')::uuid $$;
create function auth.role() returns text language sql stable as $$ select auth.jwt() ->> 'role' $$;
create function auth.email() returns text language sql stable as $$ select auth.jwt() ->> 'email' $$;`;

/**
 * The catalog without roles of other tests on the server: `reader.sql` names all roles in policies for everybody, and
 * others would come and go meanwhile.
 */
export function withOwnRoles(catalog: SecurityCatalog, mark: string): SecurityCatalog {
  const own = [...catalog.roles].filter(
    ([, { name, superuser }]) => superuser || name.startsWith('pg_') || name.includes(mark),
  );
  return { ...catalog, roles: new Map(own) };
}

export interface RoleNames {
  readonly auth: string;
  readonly anon: string;
}

/** Creates a schema for each fixture. */
export async function layOut(
  admin: pg.Client,
  names: RoleNames,
  fixtures: readonly Pick<RlsFixture, 'name' | 'sql'>[] = FIXTURES,
): Promise<void> {
  await admin.query(
    `${AUTH} grant usage on schema auth to public; grant create on schema public to ${names.auth}`,
  );
  for (const { name, sql } of fixtures) {
    const text = sql
      .replaceAll(':auth', names.auth)
      .replaceAll(':anon', names.anon)
      .replaceAll(':schema', name);
    await admin.query(`create schema ${name}; grant usage on schema ${name} to ${names.auth}, ${names.anon};
      set search_path = ${name}, public; ${text}; reset search_path`);
  }
}

/** The attributes of a caller as a policy states them. */
export function claimsOf(
  { role, settings, claims }: Caller,
  attributes: readonly CallerAttribute[],
  names: RoleNames,
): Record<string, unknown> {
  return Object.fromEntries(
    attributes.flatMap(({ name, source, list }) => {
      const value =
        source.kind === 'setting'
          ? settings[source.name]
          : source.kind === 'claim'
            ? source.path.reduce<unknown>(
                (at, key) => (at as Record<string, unknown> | undefined)?.[key],
                claims,
              )
            : names[role];
      if (value === undefined) return [];
      return [[name, list && typeof value === 'string' ? value.split(',') : value]];
    }),
  );
}

/** Rows of a fixture's documents that a caller sees in the database, as text. */
export async function rowsInDatabase(
  admin: pg.Client,
  fixture: string,
  { role, settings, claims }: Caller,
  names: RoleNames,
): Promise<readonly string[]> {
  await admin.query('begin');
  try {
    for (const [name, value] of Object.entries(settings))
      await admin.query('select set_config($1, $2, true)', [name, value]);
    await admin.query(`select set_config('request.jwt.claims', $1, true)`, [JSON.stringify(claims)]);
    await admin.query(`set local role ${names[role]}`);
    const { rows } = await admin.query<{ id: number }>(`select id from ${fixture}.doc order by id`);
    return rows.map(({ id }) => String(id));
  } catch (error) {
    // A setting that was set once is '' afterwards, which is not a uuid: then the statement fails.
    if (error instanceof Error && 'code' in error && error.code === '22P02') return [];
    throw error;
  } finally {
    await admin.query('rollback');
  }
}
