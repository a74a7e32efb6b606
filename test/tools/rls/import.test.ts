import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import pg from 'pg';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import { catalogOf } from '../../../cli/rls/database.js';
import { importDatabase } from '../../../cli/rls/import/import-database.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import { tableName } from '../../../src/model/manifest/index.js';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { CALLERS, type Caller, claimsOf, layOut, rowsInDatabase, withOwnRoles } from './import-callers.js';
import { FIXTURES } from './import-fixtures.js';
import { rowSecurityDatabase } from './row-security-database.js';
import { servingFiles } from './serving.js';

/*
 * Row security of a real database, imported and compared: as each caller, the rows under row security and the rows
 * through the gateway.
 */

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('row security is imported', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const { mark, admin } = await rowSecurityDatabase(postgres, ['auth', 'anon', 'reader']);
  const names = { auth: `auth_${mark}`, anon: `anon_${mark}` };
  await admin.query(`create role ${names.auth}; create role ${names.anon}`);
  await layOut(admin, names);
  const survey = await surveyPostgres(postgres.url);
  const scope = {
    schemas: new Set(FIXTURES.map(({ name }) => name)),
    roles: new Set([names.auth, names.anon]),
  };
  const imported = await importDatabase(survey, withOwnRoles(await catalogOf(survey), mark), {
    scope,
    tenant: 'shop',
    urlEnv: 'RLS_TEST_URL',
  });
  survey.close();

  const subjects = Object.fromEntries(
    CALLERS.map((caller) => [
      `user:${caller.name}`,
      { ceiling: [names[caller.role]], attributes: claimsOf(caller, imported.attributes, names) },
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

  const direct = (fixture: string, caller: Caller): Promise<readonly string[]> =>
    rowsInDatabase(admin, fixture, caller, names);
  const through = async (fixture: string, { name }: Caller): Promise<readonly string[]> => {
    const entity = [...imported.manifest.manifest.catalog.relations.values()].find(
      (r) => tableName(r) === `${fixture}.doc`,
    );
    if (entity === undefined) throw new Error(`${fixture}.doc is not an entity`);
    const { rows, code } = await gateway.ask(`user:${name}`, `select id from ${entity.name} order by id`);
    if (code === 'E0512') return []; // no grant
    if (rows === null) throw new Error(`${fixture} for ${name}: ${code}`);
    return rows.map(({ id }) => String(id));
  };

  /** None if the query fails, as by infinite recursion in a policy. */
  const directOrNone = (fixture: string, caller: Caller): Promise<readonly string[]> =>
    direct(fixture, caller).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError) return [];
      throw error;
    });

  for (const { name, source, refused, less = [] } of FIXTURES)
    t.test(`${name}: ${source}`, async (t: Test) => {
      const notes = imported.notes.filter(({ object }) => object.includes(`${name}.`));
      if (refused !== undefined) {
        t.ok(
          notes.some(({ kind, detail }) => kind === 'refused' && refused.test(detail ?? '')),
          `refused: ${notes.map(({ detail }) => detail).join('; ')}`,
        );
        for (const caller of CALLERS) {
          const [rows, under] = await Promise.all([through(name, caller), directOrNone(name, caller)]);
          t.ok(
            rows.every((id) => under.includes(id)),
            `never more, ${caller.name}: ${rows.join()} of ${under.join()}`,
          );
        }
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
