import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bindPredicate, ready } from 'osl-compiler';
import pg from 'pg';
import t from 'tap';
import { catalogOf } from '../../../cli/rls/database.js';
import { AttributeSources, statedSources } from '../../../cli/rls/export/attribute-sources.js';
import { exportedRowSecurity } from '../../../cli/rls/export/design.js';
import { dropScript, exportScript } from '../../../cli/rls/export/script.js';
import { type ImportedDatabase, importDatabase } from '../../../cli/rls/import/import-database.js';
import { importResult } from '../../../cli/rls/import/run.js';
import { compileSnapshot } from '../../../policy/index.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import { loadModel } from '../../../src/service/model.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, ROOT } from '../cli/support.js';
import { CALLERS, type Caller, layOut, rowsInDatabase } from './import-callers.js';
import { FIXTURES } from './import-fixtures.js';
import { rowSecurityDatabase } from './row-security-database.js';

/*
 * Row security is imported, exported to the same tables without it, and imported again. The manifests are equal, and so
 * are the policies, if filters count as equal that bind to the same expression: they differ in parentheses alone.
 */

/** Callers who see fewer rows under what is exported. */
const FEWER: ReadonlyMap<string, string> = new Map([
  ['not_blocked no-claims', 'an attribute is missing under NOT, as in the gateway'],
  ['not_in_required no-claims', 'an attribute is missing under NOT, as in the gateway'],
]);

t.setTimeout(240_000);
const postgres = await startNativePostgres();
if (postgres === null) t.test('row security is exported', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const { mark, admin } = await rowSecurityDatabase(postgres, ['auth', 'anon']);
  const names = { auth: `auth_${mark}`, anon: `anon_${mark}` };
  await admin.query(`create role ${names.auth}; create role ${names.anon}`);
  await layOut(admin, names);
  const scope = {
    schemas: new Set(FIXTURES.map(({ name }) => name)),
    roles: new Set([names.auth, names.anon]),
  };
  const imported = async (): Promise<ImportedDatabase> => {
    const survey = await surveyPostgres(postgres.url);
    try {
      const catalog = await catalogOf(survey);
      return await importDatabase(survey, catalog, { scope, tenant: 'shop', urlEnv: 'RLS_TEST_URL' });
    } finally {
      survey.close();
    }
  };
  /** Rows that a caller sees; none without a privilege. */
  const rowsOf = async (fixture: string, caller: Caller): Promise<readonly string[]> => {
    try {
      return await rowsInDatabase(admin, fixture, caller, names);
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === '42501') return [];
      throw error;
    }
  };
  const fixtures = FIXTURES.filter(({ refused }) => refused === undefined);
  const seenByAll = async (): Promise<ReadonlyMap<string, readonly string[]>> => {
    const seen = new Map<string, readonly string[]>();
    for (const { name } of fixtures)
      for (const caller of CALLERS) seen.set(`${name} ${caller.name}`, await rowsOf(name, caller));
    return seen;
  };

  const first = await imported();
  const before = await seenByAll();
  await admin.query(withoutRowSecurity(names));
  const { manifest } = first.manifest;
  const [connector] = manifest.connectors.values();
  if (connector === undefined) throw new Error('no connector');
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-export-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  writeFileSync(join(dir, 'import.json'), JSON.stringify(importResult(first, [])));
  const sources = new AttributeSources(first.policy, statedSources(join(dir, 'import.json')), 'app');
  const snapshot = compileSnapshot(first.policy, manifest.catalog);
  const exported = exportedRowSecurity(connector, manifest, snapshot, sources);
  // Twice: it replaces what an earlier export wrote.
  for (let n = 0; n < 2; n++) await admin.query(exportScript(exported));
  const second = await imported();
  const after = await seenByAll();

  t.test('the model is the same, and nothing of the policy is left out but metrics', async (t) => {
    t.strictSame(second.manifest.document, first.manifest.document);
    t.strictSame(
      exported.left.map(({ object }) => object),
      ['metrics'],
    );
    t.strictSame(
      [...second.attributes].sort(byName),
      [...first.attributes].sort(byName),
      'callers need the same attributes, of the same sources',
    );
  });

  const relations = [...manifest.catalog.relations.values()];
  const normal = ({ policy }: ImportedDatabase, schema: string) => {
    const own = relations.filter((relation) => relation.schema === schema);
    const filter = (on: string, rows: string | undefined): string | null => {
      const relation = manifest.catalog.relations.get(on);
      if (rows === undefined || relation === undefined) return null;
      return JSON.stringify(bindPredicate(rows, relation));
    };
    const isOwn = (on: string): boolean => own.some(({ name }) => name === on);
    return {
      attributes: Object.entries(policy.attributes ?? {})
        .filter(([, { on }]) => isOwn(on))
        .map(([name, one]) => ({ name, ...one, rows: filter(one.on, one.rows) })),
      roles: Object.entries(policy.roles).map(([role, { description, grants }]) => ({
        role,
        description,
        grants: grants
          .filter(({ on }) => isOwn(on))
          .map((grant) => ({ ...grant, rows: filter(grant.on, grant.rows) })),
      })),
    };
  };
  for (const { name, source } of fixtures)
    t.test(`${name}: ${source}`, async (t) => {
      const [one, other] = [normal(first, name), normal(second, name)];
      t.ok(one.roles.some(({ grants }) => grants.length > 0));
      t.strictSame(other, one);
      for (const caller of CALLERS) {
        const key = `${name} ${caller.name}`;
        const [was = [], now = []] = [before.get(key), after.get(key)];
        if (!FEWER.has(key)) t.strictSame(now, was, caller.name);
        else {
          t.ok(now.length < was.length, FEWER.get(key) ?? '');
          t.ok(now.every((id) => was.includes(id)));
        }
      }
    });

  t.test('it fails where a role would see more', async (t) => {
    const { auth, anon } = names;
    const [doc] = ['own_rows.doc'];
    for (const [more, reason] of [
      [
        `grant select on own_rows_wrapped.doc to public`,
        /may read column .* of own_rows_wrapped\.doc, by another privilege/,
      ],
      [
        `create policy all_rows on ${doc} for select using (true)`,
        /sees rows of own_rows\.doc by policy all_rows/,
      ],
      [`grant ${anon} to ${auth}`, new RegExp(`${auth} sees rows of .* by policy osl_export_`)],
      [
        `alter role ${auth} bypassrls`,
        new RegExp(`${auth} is not subject to the row security of own_rows\\.doc`),
      ],
      [
        `alter table ${doc} owner to ${auth}`,
        new RegExp(`${auth} is not subject to the row security of own_rows\\.doc`),
      ],
    ] as const) {
      await admin.query(`begin; ${more}`);
      const script = exportScript(exported).replace(/^BEGIN;$/m, '');
      await t.rejects(admin.query(script), { message: reason }, more);
      await admin.query('rollback');
    }
  });

  t.test('what was written can be removed, and then nobody sees a row', async (t) => {
    await admin.query(dropScript(exported));
    const { rows } =
      await admin.query(`select (select count(*)::int from pg_policy where polname ~ '^osl_export_') as policies,
      to_regnamespace('osl_export') as schema,
      has_any_column_privilege('${names.auth}', 'own_rows.doc', 'SELECT') as readable,
      (select relrowsecurity from pg_class where oid = 'own_rows.doc'::regclass) as enabled`);
    t.strictSame(rows, [{ policies: 0, schema: null, readable: false, enabled: true }]);
  });
}

t.test('the examples: what is not expressed is named', async (t) => {
  await ready();
  const left = async (folder: string): Promise<readonly string[]> => {
    const file = (name: string): string => join(ROOT, 'examples', folder, name);
    const { manifest, snapshot } = await loadModel(file('manifest.yaml'), file('policy.yaml'), null);
    const [connector] = manifest.connectors.values();
    if (snapshot === null || connector === undefined) throw new Error(folder);
    const sources = new AttributeSources(snapshot.document, [], 'claims');
    const exported = exportedRowSecurity(connector, manifest, snapshot, sources);
    t.match(exportScript(exported), /^BEGIN;$[\s\S]*^COMMIT;$/m, folder);
    return exported.left.map(({ object, role, reason }) => `${object}, ${role ?? 'all'}: ${reason}`);
  };
  const folders = readdirSync(join(ROOT, 'examples', 'cookbook')).map((name) => join('cookbook', name));
  for (const folder of folders) t.ok((await left(folder)).length > 0, folder);
  t.strictSame(await left('cookbook/labels'), [
    'person, analyst: name, email, born, iban: masked, and here not readable',
    'person, personnel: iban: masked, and here not readable',
    'person, analyst: logins that have support, personnel besides see no row: together they would see cells that the gateway hides',
    ...GENERAL,
  ]);
  t.strictSame(await left('supply-chain'), [
    'person, analyst: email: masked, and here not readable',
    ...['analyst', 'auditor', 'copyleft'].flatMap((role) =>
      ['readme', 'changelog'].map(
        (facet) => `${facet}, ${role}: passages of text, which the gateway searches`,
      ),
    ),
    'limits, all: limits of the gateway',
    GENERAL[0],
    'metrics, all: the gateway computes them',
    GENERAL[1],
  ]);
  t.strictSame(await left('reference'), [
    'customer, analyst: a grant with `min_group_size`, of aggregates and no rows',
    'customer, on_call: a grant with `break_glass`, which depends on the request',
    'customer, payroll: a grant with `approval`, which depends on the request',
    'order, analyst: a grant with `metrics`, of figures and no rows',
    'order, auditor: a grant with `ends`, `for`, `starts`, `when`, which depends on the request',
    'notes, sales: passages of text, which the gateway searches',
    'max_cost, analyst: a limit of the gateway',
    'limits, analyst: a limit of the gateway',
    'limits, all: limits of the gateway',
    'order, all: an order of results without ORDER BY',
    'purposes, all: grants for a purpose are left out',
    'privacy_units, all: grants of aggregates are left out',
    'service_accounts, all: logins of the gateway: GRANT role TO login',
    'certificates, all: logins of the gateway: GRANT role TO login',
    'exchange, all: roles by claims of tokens: GRANT role TO login, or SET ROLE',
    GENERAL[0],
    'subjects, all: attribute `region` with {any: true}: no setting says so, so they see less',
    'metrics, all: the gateway computes them',
    GENERAL[1],
  ]);
});

t.test('the command', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-export-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const example = join(ROOT, 'examples', 'cookbook', 'tenants');
  const file = join(dir, 'rls.sql');
  const [toFile, again, toOutput] = await Promise.all([
    osl(['rls', 'export', example, '--json', '--out', file, '--settings', 'app']),
    osl(['rls', 'export', example, '--out', ROOT]),
    osl(['rls', 'export', example, '--drop', '--connector', 'app']),
  ]);
  t.equal(toFile.code, 0, toFile.stderr);
  t.match(JSON.parse(toFile.stdout), {
    connector: 'app',
    roles: ['member'],
    tables: [
      { table: 'public.project', roles: [{ role: 'member', columns: ['id', 'name'], policies: 1 }] },
      { table: 'public.task', roles: [{ role: 'member', columns: ['id', 'project_id', 'title'] }] },
    ],
    attributes: [{ name: 'account', from: 'setting app.account', list: true }],
    left: [{ object: 'subjects' }, { object: 'joins' }],
    file,
  });
  t.match(readFileSync(file, 'utf8'), /current_setting\('app\.account', true\)/);
  t.match(again, { code: 2, stderr: /would be overwritten/ });
  t.match(toOutput, { code: 0, stdout: /DROP POLICY[\s\S]*REVOKE SELECT ON public\.project FROM member;/ });
});

const GENERAL = [
  'subjects, all: who has which role: GRANT role TO login; a chain of several subjects has no equivalent',
  'joins, all: SQL may join on any column',
] as const;

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : 1;
}

/** Removes all row security and all privileges of the two roles on tables. */
function withoutRowSecurity({ auth, anon }: { readonly auth: string; readonly anon: string }): string {
  return `do $$
    declare one record;
    begin
      for one in select polname, polrelid::regclass as relation from pg_policy loop
        execute format('drop policy %I on %s', one.polname, one.relation);
      end loop;
      for one in select oid::regclass as relation from pg_class where relkind = 'r' and relnamespace::regnamespace::text !~ '^pg_|^information_schema$' loop
        execute format('alter table %s disable row level security', one.relation);
        execute format('revoke all on %s from ${auth}, ${anon}', one.relation);
      end loop;
    end $$`;
}
