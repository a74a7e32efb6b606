import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { ready } from 'osl-compiler';
import t, { test } from 'tap';
import type { SecurityCatalog } from '../../../cli/rls/catalog/catalog.js';
import { readCatalog } from '../../../cli/rls/catalog/read.js';
import { checkedDatabase } from '../../../cli/rls/database.js';
import { viewPlans } from '../../../cli/rls/import/view-plan.js';
import { RULES } from '../../../cli/rls/rules/index.js';
import { checkCatalog } from '../../../cli/rls/run.js';
import { Sql } from '../../../src/base/sql.js';
import { clientOf, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, temporary } from '../cli/support.js';
import { rolesOf, statementsOf, VIEW_FIXTURES } from './view-fixtures.js';

t.setTimeout(240_000);
await ready();
const postgres = await startNativePostgres();

/** One error, one warning and one note, about `osl_reader`, whom each test server has. */
const FAULTS = `
  create schema app; grant usage on schema app to osl_reader;
  create table app.doc (id uuid primary key, owner_name text not null);
  create index on app.doc (owner_name);
  alter table app.doc enable row level security;
  grant select on app.doc to osl_reader;
  create policy own on app.doc using (owner_name = 'x');
  create table app."Country list" (name text); grant select on app."Country list" to osl_reader;
  create view app.docs as select * from app.doc; grant select on app.docs to osl_reader;`;

const ALL = ['RLS021 app.docs', 'RLS001 app."Country list"', 'RLS008 own on app.doc'];

interface Printed {
  readonly code: string;
  readonly object: { readonly identity: string };
}

/** Findings of JSON as `code identity`. */
function namesIn(stdout: string): readonly string[] {
  const { findings } = JSON.parse(stdout) as { readonly findings: readonly Printed[] };
  return findings.map(({ code, object }) => `${code} ${object.identity}`);
}

test('osl rls check', { skip: postgres === null && NO_NATIVE }, async (t) => {
  if (postgres === null) return;
  const client = await clientOf(t, postgres);
  await client.query(FAULTS);
  const check = (...args: readonly string[]) =>
    osl(['rls', 'check', '--url', postgres.url, '--role', 'osl_reader', ...args]);
  const [text, json, sarif, ignoring, noRole] = await Promise.all([
    check(),
    osl(['rls', 'check', '--json', '--role', 'osl_reader'], { env: { DATABASE_URL: postgres.readerUrl } }),
    check('--format', 'sarif'),
    check('--json', '--ignore', 'RLS021', 'rls008', '--fail-on', 'error', '--schema', 'app'),
    osl(['rls', 'check', '--json', '--url', postgres.url, '--role', 'osl_reeder']),
  ]);

  t.test('text', (t) => {
    t.equal(text.code, 1, text.stderr);
    t.match(
      text.stdout,
      /^error RLS021: .*\n {2}Whoever may read the view sees .*\n {2}To mend: .*\n {2}- view app\.docs \(/,
    );
    t.match(text.stdout, '      ALTER VIEW app.docs SET (security_invoker = true);');
    t.match(text.stdout, /: 1 error, 1 warning, 1 note; row security on 1 table\n$/);
    t.end();
  });

  t.test('JSON, read by a role without rights from DATABASE_URL', (t) => {
    t.equal(json.code, 1, json.stderr);
    t.strictSame(namesIn(json.stdout), ALL);
    const { ok, database, counts, findings, unread, role } = JSON.parse(json.stdout);
    t.strictSame({ ok, counts }, { ok: false, counts: { error: 1, warning: 1, note: 1 } });
    t.strictSame(unread, []);
    t.equal(role, 'osl_reader');
    t.equal(`/${database}`, new URL(postgres.url).pathname);
    t.strictSame(findings[2].sql, ['ALTER POLICY own ON app.doc TO osl_reader;']);
    t.strictSame(findings[2].object, { kind: 'policy', identity: 'own on app.doc', schema: 'app' });
    t.end();
  });

  t.test('SARIF 2.1.0', (t) => {
    t.equal(sarif.code, 1, sarif.stderr);
    const log = JSON.parse(sarif.stdout);
    t.match(log, { version: '2.1.0', $schema: /sarif-2\.1\.0\.json$/ });
    const [run] = log.runs;
    const ids = run.tool.driver.rules.map(({ id }: { id: string }) => id);
    t.strictSame(
      ids,
      RULES.map(({ code }) => code),
    );
    for (const { shortDescription, fullDescription, help, defaultConfiguration } of run.tool.driver.rules)
      t.match(
        [shortDescription.text, fullDescription.text, help.text],
        [/^\S/, /\.$/, /^\S/],
        defaultConfiguration.level,
      );
    t.equal(run.results.length, ALL.length);
    for (const [i, result] of run.results.entries()) {
      const [{ logicalLocations }] = result.locations;
      t.equal(`${result.ruleId} ${logicalLocations[0].fullyQualifiedName}`, ALL[i]);
      t.equal(ids[result.ruleIndex], result.ruleId);
      t.equal(result.level, ['error', 'warning', 'note'][i]);
      t.match(result.partialFingerprints, { 'osl/v1': /^[0-9a-f]{32}$/ });
      t.match(result.message.text, /\.$/);
    }
    t.end();
  });

  t.test('rules, severities and roles are chosen', (t) => {
    t.strictSame(namesIn(ignoring.stdout), ['RLS001 app."Country list"']);
    t.equal(ignoring.code, 0, 'with --fail-on error a warning does not fail');
    t.equal(noRole.code, 2);
    t.match(
      JSON.parse(noRole.stderr).error.message,
      'there is no role osl_reeder: perhaps you meant osl_reader',
    );
    t.end();
  });

  t.test('what the role may not read is an error that nothing hides', async (t) => {
    await client.query('revoke select on pg_catalog.pg_policy from public');
    const args = ['--json', '--url', postgres.readerUrl, '--fail-on', 'error', '--ignore', 'RLS059'];
    const blind = await osl(['rls', 'check', ...args]);
    t.equal(blind.code, 1);
    t.strictSame(namesIn(blind.stdout), ['RLS059 policies']);
    t.match(JSON.parse(blind.stdout).unread, [{ part: 'policies', reason: /permission denied/ }]);
  });
});

test('a database that is not there or not named, a rule that does not exist', async (t) => {
  const file = join(temporary(), 'url');
  writeFileSync(file, 'postgres://nobody:geheim@127.0.0.1:1/x\n');
  const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [['--url-file', file], /^postgres:\/\/nobody@127\.0\.0\.1:1\/x: nothing listens there$/],
    [['--ignore', 'RLS999'], /^there is no rule RLS999/],
    [[], /^which database\?/],
  ];
  const runs = await Promise.all(cases.map(([args]) => osl(['rls', 'check', '--json', ...args])));
  for (const [i, [args, message]] of cases.entries()) {
    t.equal(runs[i]?.code, 2, args.join(' '));
    t.match(JSON.parse(runs[i]?.stderr ?? '').error.message, message);
    t.notMatch(runs[i]?.stderr, 'geheim');
  }
});

const ANYBODY = { schemas: null, roles: null };

test('the catalog of another version of Postgres is read; a minor release without fixes is found', async (t) => {
  const db = await PGlite.create();
  t.teardown(() => db.close());
  await db.exec(
    `create role osl_reader login; create role osl_web login; grant osl_reader to osl_web with inherit false; ${FAULTS}`,
  );
  const read = (): Promise<SecurityCatalog> =>
    db.transaction((tx) =>
      readCatalog({
        query: async (statement) => (await tx.query<Record<string, unknown>>(Sql.textOf(statement))).rows,
      }),
    );
  const catalog = await read();
  t.ok(catalog.server.number >= 170_000, catalog.server.version);
  t.strictSame(
    checkCatalog(catalog, ANYBODY).map(({ code, object }) => `${code} ${object.identity}`),
    ALL,
  );
  const [web, role] = ['osl_web', 'osl_reader'].map((name) =>
    [...catalog.roles.values()].find((r) => r.name === name),
  );
  t.match(web?.memberships, [{ role: role?.id, inherit: false, set: true }], 'options of a membership (16)');
  const faultsOf = (version: string, number: number) =>
    checkCatalog({ ...catalog, server: { version, number } }, ANYBODY)
      .filter(({ code }) => code === 'RLS046')
      .map(({ object, detail }) => `${object.identity}: ${detail}`);
  t.strictSame(checkCatalog(catalog, { schemas: new Set(['public']), roles: null }), [], 'another schema');
  t.strictSame(faultsOf('15.3', 150_003), ['PostgreSQL 15.3: CVE-2023-39418, CVE-2024-10976, CVE-2025-8713']);
  t.strictSame(faultsOf('17.5', 170_005), ['PostgreSQL 17.5: CVE-2025-8713']);
  for (const [version, number] of [
    ['14.19', 140_019],
    ['15.14', 150_014],
    ['17.6', 170_006],
    ['18.0', 180_000],
  ] as const)
    t.strictSame(faultsOf(version, number), [], version);

  // Postgres 16 and later print the queries of views in another way.
  await db.exec(rolesOf('x'));
  for (const fixture of VIEW_FIXTURES) await db.exec(statementsOf(fixture, 'x'));
  const plans = viewPlans(checkedDatabase(await read(), ANYBODY));
  const kinds = new Map([...plans.values()].map(({ view, kind }) => [`${view.schema}.${view.name}`, kind]));
  for (const { name, becomes } of VIEW_FIXTURES)
    if (!(becomes instanceof RegExp) && name !== 'partitions') t.equal(kinds.get(`${name}.v`), becomes, name);

  await db.exec(`create role osl_batch;
    grant pg_read_all_data to osl_batch with inherit true, set false; grant osl_batch to osl_web with inherit false`);
  const readers = checkCatalog(await read(), ANYBODY).filter(({ code }) => code === 'RLS052');
  t.match(
    readers,
    [{ object: { identity: 'osl_web' } }],
    'by SET ROLE to a role that inherits the privileges',
  );
});
