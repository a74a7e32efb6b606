import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import { catalogOf, checkedDatabase } from '../../../cli/rls/database.js';
import { type ImportedDatabase, importDatabase } from '../../../cli/rls/import/import-database.js';
import { scratchDefinitions } from '../../../cli/rls/prove/scratch.js';
import type { PolicyDocument } from '../../../policy/index.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import { layOut } from './import-callers.js';
import type { RlsFixture } from './import-fixtures.js';

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
  await admin.query(`create role ${roles.auth}; create role ${roles.anon}`);
  await layOut(admin, roles, fixtures);
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
