import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { RICH_CUBE } from '../interchange/rich.js';
import { SHOP_CUBE, SHOP_DBT, SHOP_OSSIE, SHOP_SQL } from '../interchange/shop.js';
import { EXAMPLE, osl, temporary } from './support.js';

t.setTimeout(600_000);

const dir = temporary();
const at = (name: string): string => join(dir, name);
writeFileSync(at('dbt.yml'), SHOP_DBT);
writeFileSync(at('cube.yml'), SHOP_CUBE);
writeFileSync(at('ossie.yml'), SHOP_OSSIE);
writeFileSync(at('rich.yml'), RICH_CUBE);

test('osl import writes a manifest that osl validate accepts, and a policy that grants nothing', async (t) => {
  for (const format of ['dbt', 'cube', 'ossie']) {
    mkdirSync(at(format));
    const out = at(`${format}/manifest.yaml`);
    const done = await osl(['import', format, at(`${format}.yml`), '--schema', 'shop', '--out', out]);
    t.equal(done.code, 0, done.stderr);
    t.equal(done.stdout, '');
    t.match(done.stderr, /\d+ entities, \d+ metrics; .*to decide/);
    const checked = await osl(['validate', '--manifest', out]);
    t.equal(checked.code, 0, checked.stderr);
    t.match(checked.stdout, /policy\.yaml: ok, 0 subjects/);
    t.match(readFileSync(at(`${format}/policy.yaml`), 'utf8'), /^subjects: \{\}$/m);
  }
});

test('osl import writes the policy alone where only that is asked for', async (t) => {
  const policy = at('alone.yaml');
  const done = await osl(['import', 'dbt', at('dbt.yml'), '--policy-out', policy]);
  t.match(done, { code: 0, stdout: /^entities:$/m });
  t.notMatch(done.stderr, /no policy was written/);
  t.match(readFileSync(policy, 'utf8'), /^subjects: \{\}$/m);
});

test('osl import says what was lost, with its place', async (t) => {
  const done = await osl(['import', 'cube', at('rich.yml')]);
  t.equal(done.code, 0);
  t.match(done.stderr, /rich\.yml:25:9: lost: `second`: a named filter has no counterpart/);
  t.match(done.stderr, /rich\.yml:22:9: lost \(access\): dimension `inner` is hidden/);
  t.match(done.stdout, /^entities:$/m, 'the manifest is on standard output');
  const strict = await osl(['import', 'cube', at('rich.yml'), '--strict', '--json']);
  t.equal(strict.code, 1);
  const { manifest, policy, losses } = JSON.parse(strict.stdout);
  t.match(manifest, { version: 1, entities: { trip: {}, ship: {} } });
  t.match(policy, { subjects: {} });
  t.match(losses[0], {
    kind: String,
    severity: String,
    file: at('rich.yml'),
    range: { start: { line: 3 } },
    path: String,
  });
});

test('osl import writes over nothing, and takes no names that are none', async (t) => {
  const folder = at('kept');
  mkdirSync(folder);
  writeFileSync(join(folder, 'policy.yaml'), 'mine');
  const done = await osl(['import', 'dbt', at('dbt.yml'), '--out', join(folder, 'manifest.yaml')]);
  t.equal(done.code, 2);
  t.match(done.stderr, /policy\.yaml exists, and is not overwritten/);
  t.notOk(existsSync(join(folder, 'manifest.yaml')), 'neither of the two');
  t.equal(readFileSync(join(folder, 'policy.yaml'), 'utf8'), 'mine');
  const nowhere = await osl(['import', 'dbt', at('dbt.yml'), '--out', join(folder, 'none', 'manifest.yaml')]);
  t.match(nowhere, { code: 2, stderr: /manifest\.yaml: its folder does not exist/ });
  for (const flags of [
    ['--schema', 'a.b'],
    ['--connector', '__x'],
    ['--tenant', 'a b'],
    ['--key', 'orders'],
  ])
    t.equal((await osl(['import', 'dbt', at('dbt.yml'), ...flags])).code, 2, flags.join(' '));
  t.equal((await osl(['import', 'dbt', at('nowhere')])).code, 2);
  t.equal((await osl(['import', 'lookml', at('dbt.yml')])).code, 2);
  writeFileSync(at('broken.yml'), 'cubes: [1,');
  const broken = await osl(['import', 'cube', at('broken.yml')]);
  t.equal(broken.code, 2);
  t.match(broken.stderr, /broken\.yml:1:\d+: error M0003/);
});

test('osl import reads folders, but not what others have built there', async (t) => {
  const project = at('project');
  mkdirSync(join(project, 'models'), { recursive: true });
  mkdirSync(join(project, 'target'));
  writeFileSync(join(project, 'models', 'shop.yml'), SHOP_DBT);
  writeFileSync(join(project, 'target', 'copy.yml'), SHOP_DBT);
  writeFileSync(join(project, 'dbt_project.yml'), 'name: shop\n');
  const done = await osl(['import', 'dbt', project, '--json']);
  t.equal(done.code, 0, done.stderr);
  t.same(Object.keys(JSON.parse(done.stdout).manifest.entities), ['client', 'sale']);
});

test('osl import --url takes types, keys and what may be NULL from the database', async (t) => {
  const native = await startNativePostgres();
  if (native === null) {
    t.comment('there is no Postgres on this machine');
    return;
  }
  t.teardown(() => native.stop());
  const engine = await openEngine({
    kind: 'postgres',
    url: native.readerUrl,
    systemUrl: native.url,
    poolSize: 1,
  });
  await engine.system.script(generatedSql(SHOP_SQL));
  await engine.system.grantRead('shop');
  await engine.close();
  const keyless = SHOP_CUBE.replace(
    'sale_no, sql: sale_no, type: number, primary_key: true,',
    'sale_no, sql: sale_no, type: number,',
  );
  writeFileSync(at('keyless.yml'), keyless);
  t.match(
    await osl(['import', 'cube', at('keyless.yml'), '--url', 'postgres://reader:secret@127.0.0.1:1/shop']),
    {
      code: 2,
      stderr: /^error: .*postgres:\/\/reader.*127\.0\.0\.1:1\/shop/,
    },
  );
  const done = await osl(['import', 'cube', at('keyless.yml'), '--url', native.readerUrl, '--json']);
  t.equal(done.code, 0, done.stderr);
  const { manifest, losses } = JSON.parse(done.stdout);
  t.match(manifest.connectors.db.tables['shop.sales'].columns, {
    sale_no: { type: 'int8' },
    sold_on: { type: 'date', nullable: false },
    pieces: { type: 'int4' },
  });
  t.same(manifest.entities.sale.primary_key, ['sale_no']);
  t.notOk(losses.some((l: { reason: string }) => l.reason.includes('was assumed')));
});

test('osl export ossie writes what osl import reads back as the same manifest', async (t) => {
  const folder = at('exported');
  mkdirSync(folder);
  const manifest = join(EXAMPLE, 'manifest.yaml');
  const done = await osl(['export', 'ossie', '--manifest', manifest, '--out', join(folder, 'model.yaml')]);
  t.equal(done.code, 0, done.stderr);
  t.match(done.stderr, /manifest\.yaml:\d+:3: lost: facet `readme` is in the extension only/);
  t.notMatch(readFileSync(join(folder, 'model.yaml'), 'utf8'), /user:analyst/);
  const back = await osl([
    'import',
    'ossie',
    join(folder, 'model.yaml'),
    '--out',
    join(folder, 'manifest.yaml'),
  ]);
  t.equal(back.code, 0, back.stderr);
  t.match(back.stderr, /nothing was lost/);
  const version = async (file: string): Promise<string> =>
    JSON.parse((await osl(['validate', '--manifest', file, '--json'])).stdout).versions.manifest;
  t.equal(await version(join(folder, 'manifest.yaml')), await version(manifest));
  const shared = await osl([
    'export',
    'ossie',
    '--manifest',
    manifest,
    '--with-policy',
    '--json',
    '--strict',
  ]);
  t.equal(shared.code, 1, 'something did not map');
  t.match(JSON.parse(shared.stdout).ossie.semantic_model[0].custom_extensions[0].data, /user:analyst/);
});
