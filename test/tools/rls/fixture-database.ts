import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import { checkedDatabase } from '../../../cli/rls/checked-database.js';
import { catalogOf } from '../../../cli/rls/database.js';
import { type ImportedDatabase, importDatabase } from '../../../cli/rls/import/import-database.js';
import { scratchDefinitions } from '../../../cli/rls/prove/scratch.js';
import type { PolicyDocument } from '../../../policy/index.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import type { RlsFixture } from './import-fixtures.js';

const AUTH = `
create schema auth;
create function auth.jwt() returns jsonb language sql stable as
  $$ select nullif(current_setting('request.jwt.claims', true), '')::jsonb $$;
create function auth.uid() returns uuid language sql stable as $$ select (auth.jwt() ->> 'sub')::uuid $$;
create function auth.role() returns text language sql stable as $$ select auth.jwt() ->> 'role' $$;
create function auth.email() returns text language sql stable as $$ select auth.jwt() ->> 'email' $$;`;

/** Creates each fixture in a schema of its own, with two roles, and imports all of it. */
export async function importedFixtures(
  t: Pick<Test, 'teardown'>,
  postgres: NativePostgres,
  fixtures: readonly Pick<RlsFixture, 'name' | 'sql'>[],
) {
  const mark = new URL(postgres.url).pathname.slice(1).replaceAll(/\W/g, '');
  const roles = { auth: `auth_${mark}`, anon: `anon_${mark}` };
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  t.teardown(() => postgres.stop(Object.values(roles)));
  await admin.query(`create role ${roles.auth}; create role ${roles.anon}; ${AUTH}
    grant usage on schema auth to public; grant create on schema public to ${roles.auth}`);
  for (const { name, sql } of fixtures) {
    const text = sql
      .replaceAll(':auth', roles.auth)
      .replaceAll(':anon', roles.anon)
      .replaceAll(':schema', name);
    await admin.query(`create schema ${name}; grant usage on schema ${name} to ${roles.auth}, ${roles.anon};
      set search_path = ${name}, public; ${text}; reset search_path`);
  }
  await admin.end();
  const survey = await surveyPostgres(postgres.url);
  const scope = {
    schemas: new Set(fixtures.map(({ name }) => name)),
    roles: new Set(Object.values(roles)),
  };
  const catalog = await catalogOf(survey);
  const imported = await importDatabase(survey, catalog, { scope, tenant: 'shop', urlEnv: 'RLS_TEST_URL' });
  const definitions = await scratchDefinitions(survey.system);
  survey.close();
  return { roles, imported, definitions, catalog, database: checkedDatabase(catalog, scope) };
}

/** Writes the two files of an import to a new folder. */
export function writtenFiles({ manifest }: ImportedDatabase, policy: PolicyDocument) {
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-prove-'));
  const files = { manifestFile: join(dir, 'manifest.yaml'), policyFile: join(dir, 'policy.yaml') };
  writeFileSync(files.manifestFile, stringify(manifest.document));
  writeFileSync(files.policyFile, stringify(policy));
  return { dir, ...files };
}
