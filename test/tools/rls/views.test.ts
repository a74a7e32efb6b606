import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ready } from 'osl-compiler';
import pg from 'pg';
import t, { type Test } from 'tap';
import { stringify } from 'yaml';
import {
  attributesOfCaller,
  type ComparedCaller,
  sessionSettings,
} from '../../../cli/rls/compare/callers.js';
import type { RlsComparison } from '../../../cli/rls/compare/run.js';
import { catalogOf, checkedDatabase } from '../../../cli/rls/database.js';
import { importDatabase } from '../../../cli/rls/import/import-database.js';
import { entityRoles, viewPlans } from '../../../cli/rls/import/view-plan.js';
import { surveyPostgres } from '../../../src/engine/index.js';
import { NO_NATIVE, startNativePostgres, urlAs } from '../../support/native-postgres.js';
import { osl } from '../cli/support.js';
import { withOwnRoles } from './import-callers.js';
import { servingFiles } from './serving.js';
import { rolesOf, statementsOf, VIEW_FIXTURES, type ViewFixture } from './view-fixtures.js';

/*
 * Views of a real database, imported and compared: as each caller, the rows and values of the view and those of its entity
 * through the gateway.
 */

const ANN = '11111111-1111-4111-8111-111111111111';
const BOB = '22222222-2222-4222-8222-222222222222';

/** Rows as text by column; null: the statement fails. */
type Rows = readonly Readonly<Record<string, string | null>>[] | null;

t.setTimeout(240_000);

const postgres = await startNativePostgres();
if (postgres === null) t.test('views are imported', { skip: NO_NATIVE }, async () => undefined);
else {
  await ready();
  const mark = new URL(postgres.url).pathname.slice(1).replaceAll(/\W/g, '');
  const [auth, anon, lead, staff, owner] = ['auth', 'anon', 'lead', 'staff', 'owner'].map(
    (r) => `${r}_${mark}`,
  );
  const callers: readonly ComparedCaller[] = [
    { name: 'nobody', role: `${anon}`, settings: {}, claims: {} },
    { name: 'no-claims', role: `${auth}`, settings: {}, claims: {} },
    {
      name: 'ann',
      role: `${auth}`,
      settings: { 'app.name': `${lead}` },
      claims: { sub: ANN, user_role: 'staff' },
    },
    {
      name: 'bob',
      role: `${auth}`,
      settings: { 'app.unmask': 'on' },
      claims: { sub: BOB, user_role: 'guest' },
    },
    { name: 'lead', role: `${lead}`, settings: { 'app.unmask': 'off' }, claims: { sub: BOB } },
  ];
  const admin = new pg.Client(postgres.url);
  await admin.connect();
  await admin.query(rolesOf(mark));
  t.teardown(async () => {
    await admin.end();
    await postgres.stop([`${lead}`, `${auth}`, `${anon}`, `${staff}`, `${owner}`, `reader_${mark}`]);
  });
  for (const fixture of VIEW_FIXTURES) await admin.query(statementsOf(fixture, mark));
  const survey = await surveyPostgres(postgres.url);
  const catalog = withOwnRoles(await catalogOf(survey), mark);
  const scope = {
    schemas: new Set(VIEW_FIXTURES.map(({ name }) => name)),
    roles: new Set([`${auth}`, `${anon}`, `${lead}`]),
  };
  const imported = await importDatabase(survey, catalog, {
    scope,
    tenant: 'shop',
    urlEnv: 'RLS_VIEWS_TEST_URL',
  });
  survey.close();
  const plans = viewPlans(checkedDatabase(catalog, scope));
  const entities = entityRoles(imported.manifest.manifest, plans);

  const subjects = Object.fromEntries(
    callers.map((caller) => [
      `user:${caller.name}`,
      { ceiling: [caller.role], attributes: attributesOfCaller(caller, imported.attributes) },
    ]),
  );
  const dir = mkdtempSync(join(tmpdir(), 'osl-rls-views-'));
  writeFileSync(join(dir, 'manifest.yaml'), stringify(imported.manifest.document));
  writeFileSync(
    join(dir, 'policy.yaml'),
    stringify({ ...imported.policy, subjects, limits: { query: 100_000 } }),
  );
  await admin.query(
    imported
      .readerSql('osl_reader_of_rls')
      .replaceAll('osl_reader_of_rls', `reader_${mark}`)
      .replace('choose one', 'osl'),
  );
  const gateway = await servingFiles(dir, {
    RLS_VIEWS_TEST_URL: urlAs(postgres.url, `reader_${mark}`, 'osl'),
  });
  t.teardown(() => gateway.close());

  /** The columns of the view, as the caller reads them in the database. */
  const direct = async (
    fixture: string,
    caller: ComparedCaller,
    columns: readonly string[],
  ): Promise<Rows> => {
    await admin.query('begin');
    try {
      for (const [name, value] of sessionSettings(caller))
        await admin.query('select set_config($1, $2, true)', [name, value]);
      await admin.query(`set local role ${caller.role}`);
      const texts = columns.map((column) => `${column}::text`).join(', ');
      return (await admin.query<Record<string, string | null>>(`select ${texts} from ${fixture}.v`)).rows;
    } catch (error) {
      if (error instanceof pg.DatabaseError && error.code === '42501') return null;
      throw error;
    } finally {
      await admin.query('rollback');
    }
  };

  const entityOf = (fixture: string): string | null => {
    const view = [...catalog.relations.values()].find((r) => r.schema === fixture && r.name === 'v');
    const found = view === undefined ? undefined : entities.ofViews.get(view.id);
    return found?.name ?? entities.own.get(`${fixture}.v`)?.name ?? null;
  };

  /** All that the caller may read of the entity; without a grant nothing. */
  const through = async (entity: string, { name }: ComparedCaller): Promise<Rows> => {
    const columns = columnsGranted(entity, name);
    if (columns.length === 0) return [];
    const texts = columns.map((column) => `${column}::text as ${column}`).join(', ');
    const { rows, code } = await gateway.ask(`user:${name}`, `select ${texts} from ${entity}`);
    if (rows === null) throw new Error(`${entity} for ${name}: ${code}`);
    return rows.map((row) =>
      Object.fromEntries(columns.map((c) => [c, row[c] === null ? null : String(row[c])])),
    );
  };

  const columnsGranted = (entity: string, caller: string): readonly string[] => {
    const role = callers.find(({ name }) => name === caller)?.role ?? '';
    const grants = imported.policy.roles[role]?.grants.filter(({ on }) => on === entity) ?? [];
    return [...new Set(grants.flatMap(({ columns }) => columns))];
  };

  const maskOf = (entity: string, column: string): string | null => {
    const model = imported.manifest.manifest.catalog.relations.get(entity);
    const label = model?.columns.find(({ name }) => name === column)?.sensitivity ?? null;
    return label === null ? null : (imported.policy.masks[label] ?? 'deny');
  };

  /** The values in the table, by column and row. */
  const inTable = async (fixture: string, entity: string, columns: readonly string[]) => {
    const model = imported.manifest.manifest.catalog.relations.get(entity);
    const pairs = columns.map(
      (c) => `${model?.columns.find(({ name }) => name === c)?.physical}::text as ${c}`,
    );
    const { rows } = await admin.query<Record<string, string | null>>(
      `select id, ${pairs.join(', ')} from ${fixture}.doc`,
    );
    return new Map(rows.flatMap((row) => columns.map((c) => [`${c} ${row['id']}`, row[c] ?? null] as const)));
  };

  /** Compares the rows of one caller, and returns their number. */
  const compared = async (t: Test, fixture: ViewFixture, entity: string, caller: ComparedCaller) => {
    const less = fixture.less?.includes(caller.name) === true;
    const rows = (await through(entity, caller)) ?? [];
    const columns = columnsGranted(entity, caller.name);
    const under = columns.length === 0 ? null : await direct(fixture.name, caller, columns);
    const all = columns.length === 0 ? await direct(fixture.name, caller, ['id']) : under;
    if (under === null) {
      t.strictSame(rows, [], `${caller.name}: nothing, as in the database`);
      t.ok(all === null || all.length === 0 || less, `${caller.name} has no grant`);
      return 0;
    }
    const masked = columns.filter((column) => maskOf(entity, column) !== null);
    const plain = columns.filter((column) => !masked.includes(column));
    const texts = (list: NonNullable<Rows>) =>
      list.map((row) => JSON.stringify(plain.map((c) => row[c]))).sort();
    t.strictSame(texts(rows), texts(under), `${caller.name}: the same rows`);
    const values =
      masked.length === 0 ? new Map<string, string | null>() : await inTable(fixture.name, entity, masked);
    const cells = plain.includes('id')
      ? masked.flatMap((column) =>
          rows.map((row) => ({
            cell: row[column] ?? null,
            value: values.get(`${column} ${row['id']}`) ?? null,
            view: under.find(({ id }) => id === row['id'])?.[column] ?? null,
          })),
        )
      : [];
    t.strictSame(
      cells.filter(({ cell, view }) => !showsNoMore(cell, view)),
      [],
      `${caller.name}: no cell shows more`,
    );
    if (!less)
      t.strictSame(
        cells.filter(({ cell, view, value }) => value !== null && view === value && cell !== view),
        [],
        `${caller.name}: what the view shows in the clear is clear`,
      );
    return rows.length;
  };

  for (const fixture of VIEW_FIXTURES)
    t.test(fixture.name, async (t: Test) => {
      const { name, becomes, leftOut = [] } = fixture;
      const entity = entityOf(name);
      const notes = imported.notes.filter(({ object }) => object.includes(`${name}.`));
      if (becomes instanceof RegExp) {
        const reasons = notes.flatMap(({ kind, detail }) => (kind === 'refused' ? (detail ?? '') : []));
        t.ok(
          reasons.some((reason) => becomes.test(reason)),
          `refused: ${reasons.join('; ')}`,
        );
        const granted = callers.flatMap((caller) =>
          entity === null ? [] : columnsGranted(entity, caller.name),
        );
        t.strictSame(granted, [], 'nobody has a grant');
        return;
      }
      if (entity === null)
        throw new Error(`${name} is not an entity: ${notes.map(({ detail }) => detail).join('; ')}`);
      t.equal(entities.own.get(`${name}.v`)?.name === entity, becomes === 'view', becomes);
      let seen = 0;
      for (const caller of callers) seen += await compared(t, fixture, entity, caller);
      t.equal(seen > 0, fixture.empty !== true, `${seen} rows`);
      for (const [column, mask] of Object.entries(fixture.masks ?? {}))
        t.equal(maskOf(entity, column), mask, `the mask of ${column}`);
      const changes = notes.filter(({ kind }) => kind === 'changed').map(({ detail }) => detail ?? '');
      for (const column of leftOut) {
        t.notOk(
          callers.some((caller) => columnsGranted(entity, caller.name).includes(column)),
          `without ${column}`,
        );
        t.ok(
          changes.some((detail) => detail.includes(`${column} is left out`)),
          `the report says so of ${column}`,
        );
      }
    });

  t.test('osl rls compare compares views, and finds the one whose grant shows too much', async (t) => {
    const shop = mkdtempSync(join(tmpdir(), 'osl-rls-views-'));
    const wide = entityOf('of_current_user');
    const roles = Object.entries(imported.policy.roles).map(([role, { grants, ...rest }]) => {
      const changed = grants.map(({ rows, ...grant }) => (grant.on === wide ? grant : { ...grant, rows }));
      return [role, { ...rest, grants: changed }];
    });
    writeFileSync(join(shop, 'manifest.yaml'), stringify(imported.manifest.document));
    writeFileSync(
      join(shop, 'policy.yaml'),
      stringify({ ...imported.policy, roles: Object.fromEntries(roles) }),
    );
    writeFileSync(
      join(shop, 'callers.yaml'),
      stringify(callers.filter(({ name }) => name === 'ann' || name === 'lead' || name === 'nobody')),
    );
    const flags = ['--url', postgres.url, '--callers', join(shop, 'callers.yaml'), '--json'];
    const { code, stdout, stderr } = await osl(['rls', 'compare', shop, ...flags], {
      cwd: shop,
      env: { RLS_VIEWS_TEST_URL: urlAs(postgres.url, `reader_${mark}`, 'osl') },
    });
    t.equal(code, 1, stderr);
    const comparisons: readonly RlsComparison[] = JSON.parse(stdout).comparisons;
    const notEqual = comparisons.filter(({ result }) => result !== 'equal');
    t.strictSame(
      new Set(notEqual.map(({ entity, result }) => `${entity} ${result}`)),
      new Set([`${wide} wider`, ...REFUSED_OR_FAILING]),
    );
    const views = new Set(comparisons.map(({ entity }) => entity));
    for (const { name, becomes } of VIEW_FIXTURES)
      if (!(becomes instanceof RegExp)) t.ok(views.has(entityOf(name) ?? ''), `${name} is compared`);
  });
}

/** Entities that no role is granted, though a role may read them, or whose queries fail in the database. */
const REFUSED_OR_FAILING = [
  'policy_with_a_function_without_right_doc unknown',
  'policy_with_a_function_without_right_v unknown',
  'function_without_right_v unknown',
  'invoker_over_open_tables_v unknown',
  'invoker_without_privilege_v unknown',
  'volatile_v narrower',
];

const HASH = /^[0-9a-f]{64}$/;

/** True if a cell tells nothing about the value that the view does not tell, too. */
function showsNoMore(cell: string | null, view: string | null): boolean {
  if (cell === view || cell === null || cell === '[redacted]') return true;
  if (view === null) return false;
  if (HASH.test(cell)) return /^[0-9a-f]{32}$/.test(view);
  return cell.endsWith('***') && cell.length === 4 && view.startsWith(cell.slice(0, 1));
}
