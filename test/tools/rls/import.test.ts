import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import pg from 'pg';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { catalogOf } from '../../../cli/rls/database.js';
import type { CallerAttribute } from '../../../cli/rls/import/attributes.js';
import { importDatabase } from '../../../cli/rls/import/import-database.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import { tableName } from '../../../src/model/manifest/index.js';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { FIXTURES } from './import-fixtures.js';
import { servingFiles } from './serving.js';

/*
 * Row security of a real database, imported and compared: as each caller, the rows under row security and the rows
 * through the gateway.
 */

interface Caller {
  readonly name: string;
  readonly role: 'auth' | 'anon';
  readonly settings: Readonly<Record<string, string>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

const ANN = '11111111-1111-4111-8111-111111111111';
const BOB = '22222222-2222-4222-8222-222222222222';

const CALLERS: readonly Caller[] = [
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

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('row security is imported', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const mark = new URL(postgres.url).pathname.slice(1).replaceAll(/\W/g, '');
  const names = { auth: `auth_${mark}`, anon: `anon_${mark}` };
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  await admin.query(`create role ${names.auth}; create role ${names.anon}; ${AUTH}
    grant usage on schema auth to public; grant create on schema public to ${names.auth}`);
  t.teardown(async () => {
    await admin.end();
    await postgres.stop([names.auth, names.anon, `reader_${mark}`]);
  });
  for (const { name, sql } of FIXTURES) {
    const text = sql
      .replaceAll(':auth', names.auth)
      .replaceAll(':anon', names.anon)
      .replaceAll(':schema', name);
    await admin.query(`create schema ${name}; grant usage on schema ${name} to ${names.auth}, ${names.anon};
      set search_path = ${name}, public; ${text}; reset search_path`);
  }
  const survey = await surveyPostgres(postgres.url);
  const scope = {
    schemas: new Set(FIXTURES.map(({ name }) => name)),
    roles: new Set([names.auth, names.anon]),
  };
  const imported = await importDatabase(survey, await catalogOf(survey), {
    scope,
    tenant: 'shop',
    urlEnv: 'RLS_TEST_URL',
  });
  survey.close();

  const attributesOf = ({ role, settings, claims }: Caller): Record<string, unknown> =>
    Object.fromEntries(
      imported.attributes.flatMap(({ name, source, list }: CallerAttribute) => {
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
  const subjects = Object.fromEntries(
    CALLERS.map((caller) => [
      `user:${caller.name}`,
      { ceiling: [names[caller.role]], attributes: attributesOf(caller) },
    ]),
  );
  const policy = { ...imported.policy, subjects, limits: { query: 100_000 } };
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-'));
  writeFileSync(join(dir, 'manifest.yaml'), stringify(imported.manifest.document));
  writeFileSync(join(dir, 'policy.yaml'), stringify(policy));
  await admin.query(
    imported
      .readerSql('osl_reader_of_rls')
      .replaceAll('osl_reader_of_rls', `reader_${mark}`)
      .replace('choose one', 'osl'),
  );
  const gateway = await servingFiles(dir, { RLS_TEST_URL: urlAs(postgres.url, `reader_${mark}`, 'osl') });
  t.teardown(() => gateway.close());

  /** Rows of a fixture's documents under row security, as text. */
  const direct = async (fixture: string, { role, settings, claims }: Caller): Promise<readonly string[]> => {
    await admin.query('begin');
    try {
      for (const [name, value] of Object.entries(settings))
        await admin.query('select set_config($1, $2, true)', [name, value]);
      await admin.query(`select set_config('request.jwt.claims', $1, true)`, [JSON.stringify(claims)]);
      await admin.query(`set local role ${names[role]}`);
      const { rows } = await admin.query<{ id: number }>(`select id from ${fixture}.doc order by id`);
      return rows.map(({ id }) => String(id));
    } catch (error) {
      // A setting that was set once is '' afterwards, which is no uuid: then the statement fails.
      if (error instanceof pg.DatabaseError && error.code === '22P02') return [];
      throw error;
    } finally {
      await admin.query('rollback');
    }
  };
  const through = async (fixture: string, { name }: Caller): Promise<readonly string[] | null> => {
    const entity = [...imported.manifest.manifest.catalog.relations.values()].find(
      (r) => tableName(r) === `${fixture}.doc`,
    );
    if (entity === undefined) throw new Error(`${fixture}.doc is no entity`);
    const { rows, code } = await gateway.ask(`user:${name}`, `select id from ${entity.name} order by id`);
    if (code === 'E0512') return []; // no grant
    if (rows === null) throw new Error(`${fixture} for ${name}: ${code}`);
    return rows.map(({ id }) => String(id));
  };

  for (const { name, source, refused, less = [] } of FIXTURES)
    t.test(`${name}: ${source}`, async (t: Test) => {
      const notes = imported.notes.filter(({ object }) => object.includes(`${name}.`));
      if (refused !== undefined) {
        t.ok(
          notes.some(({ kind, detail }) => kind === 'refused' && refused.test(detail ?? '')),
          `refused: ${notes.map(({ detail }) => detail).join('; ')}`,
        );
        return;
      }
      t.strictSame(
        notes.filter(({ kind, object }) => kind === 'refused' && object.includes('doc')),
        [],
      );
      let seen = 0;
      for (const caller of CALLERS) {
        const [rows, under] = await Promise.all([through(name, caller), direct(name, caller)]);
        if (less.includes(caller.name)) t.strictSame(rows, [], `${caller.name} lacks an attribute`);
        else t.strictSame(rows, under, caller.name);
        seen += under.length;
      }
      t.ok(seen > 0, 'somebody sees a row');
    });
}
