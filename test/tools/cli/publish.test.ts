import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { sql } from '../../../src/base/sql.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl, temporary } from './support.js';

t.setTimeout(600_000);
const rest = await startRest();
const dir = temporary();

/** The command as the admin against the test's server. */
async function run(args: readonly string[], roles: readonly string[] = ['TENANT_ADMIN']) {
  const token = await rest.test.token('user:root', { roles });
  return osl([...args, '--server', `http://127.0.0.1:${rest.port}`], { env: { OSL_TOKEN: token }, cwd: dir });
}

test('publishing from a terminal', async (t) => {
  t.teardown(() => rest.close());
  const { service } = rest.test;
  const served = (): string => service.model().manifest.version;
  const file = served();
  writeFileSync(join(dir, 'orders.yaml'), 'metrics:\n  orders: { entity: order, expression: count(*) }\n');

  await t.test('--check says what it would change, and for whom', async (t) => {
    const { code, stdout } = await run(['publish', 'orders.yaml', '--check']);
    t.equal(code, 0);
    t.match(
      stdout,
      /^\+ metric orders\nrole analyst \(5 subjects\)\n {2}gains osl\.metrics\.orders: nothing -> served/,
    );
    t.equal(served(), file);
  });

  await t.test('a fragment', async (t) => {
    const refused = await run(['publish', 'orders.yaml'], []);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /^error E2101: only admins can publish\n/);
    const stale = await run(['publish', 'orders.yaml', '--base-version', '0'.repeat(32)]);
    t.equal(stale.code, 1);
    t.match(stale.stderr, /^error E4120: /);
    const done = await run(['publish', 'orders.yaml', '--base-version', file]);
    t.equal(done.code, 0, done.stderr);
    t.match(done.stdout, `published as version 1; serves manifest ${served()}\n`);
    const again = await run(['publish', 'orders.yaml']);
    t.match(again, { code: 0, stdout: /nothing changes\n[\s\S]*all of it was published already/ });
  });

  await t.test('--check refuses what publishing refuses', async (t) => {
    for (const part of ['raw_sql: { allow: [] }', 'features: { joins: any }']) {
      writeFileSync(join(dir, 'file-only.yaml'), `${part}\n`);
      const checked = await run(['publish', 'file-only.yaml', '--check']);
      t.match(checked, { code: 2, stderr: /^manifest: error E2101 publishing cannot change `/ }, part);
    }
  });

  await t.test('what could not be served is told with its place', async (t) => {
    writeFileSync(
      join(dir, 'wrong.yaml'),
      'metrics:\n  wrong: { entity: order, expression: sum(nothing) }\n',
    );
    for (const more of [[], ['--check']]) {
      const { code, stderr, stdout } = await run(['publish', 'wrong.yaml', ...more]);
      t.equal(code, 2);
      t.equal(stdout, '');
      t.match(stderr, /^wrong\.yaml:2:\d+: error M2011 /);
    }
  });

  await t.test('drafts', async (t) => {
    writeFileSync(join(dir, 'word.yaml'), 'lexicon:\n  turnover: { refers_to: revenue }\n');
    const kept = await run(['publish', 'word.yaml', '--draft']);
    const id = /^(draft-[0-9a-f]{32}): draft\n$/.exec(kept.stdout)?.[1] ?? '';
    t.match((await run(['publish', '--from-draft', id])).stderr, /^error E4090: /);
    t.match(
      (await run(['publish', '--from-draft', id, '--check'])).stdout,
      `${id}: validated\n+ term turnover\n`,
    );
    t.match((await run(['publish', '--from-draft', id])).stdout, 'published as version 2');
    t.equal(
      (await run(['objects', id])).stdout,
      `${id}: published\n\n${readFileSync(join(dir, 'word.yaml'), 'utf8')}`,
    );
  });

  await t.test('deprecation, withdrawal, rollback, and what there was', async (t) => {
    t.equal((await run(['publish', '--withdraw', 'metrics.orders'])).code, 1);
    const marked = await run(['publish', '--deprecate', 'metrics.orders=use count(*)']);
    t.match(marked.stdout, /^~ metric orders: deprecated\nnobody gains or loses access\n/);
    t.match((await run(['publish', '--restore', 'metrics.orders'])).stdout, '~ metric orders: deprecated');
    await run(['publish', '--deprecate', 'metrics.orders=x']);
    t.match((await run(['publish', '--withdraw', 'metrics.orders'])).stdout, /^- metric orders\n/);
    t.match((await run(['publish', '--rollback', '1'])).stdout, 'published as version 7');
    const listed = await run(['objects']);
    t.match(listed.stdout, ` metrics.orders | published |`);
    t.match(listed.stdout, /^ 7 +\| rollback +\| [0-9TZ:.-]+ +\| user:root \| [0-9a-f]{32}$/m);
    t.match(
      (await run(['objects', '7'])).stdout,
      /^version 7: rollback to 1 at .* by user:root\n- term turnover\n\+ metric orders\n/,
    );
    const json = JSON.parse((await run(['objects', '--json'])).stdout);
    t.equal(json.history.length, 7);
    t.match((await run(['publish', '--rollback', '0'])).stdout, `serves manifest ${file}`);
  });

  await t.test('one change at a time', async (t) => {
    for (const args of [
      [],
      ['orders.yaml', '--rollback', '1'],
      ['--rollback', '1', '--check'],
      ['--deprecate', 'metrics.orders'],
    ])
      t.equal((await run(['publish', ...args])).code, 2, args.join(' '));
    t.equal((await run(['publish', 'nothing.yaml'])).code, 2);
  });

  await t.test('osl suggest drafts, osl publish takes it', async (t) => {
    await rest.test.engine.system.script(
      sql`CREATE TABLE shop.notes (id int PRIMARY KEY, body text NOT NULL)`,
    );
    const draft = await run(['suggest', 'db.shop.notes']);
    t.match(draft.stdout, /^connectors:\n {2}db:\n/);
    t.match(draft.stderr, /^note: no column has a sensitivity label/);
    writeFileSync(join(dir, 'notes.yaml'), draft.stdout);
    const done = await run(['publish', 'notes.yaml']);
    t.match(done.stdout, /^\+ entity notes\n/);
    t.equal(
      done.stderr,
      'note: entity notes: no role has a grant on it, so nobody sees it until the policy gives one\n',
    );
    t.match((await run(['suggest', '--term', 'customers'])).stdout, /^lexicon:\n {2}customers:\n/);
    t.match(await run(['suggest', 'db.shop.nowhere']), { code: 1, stderr: /^error E1001: / });
  });

  await t.test('osl validate takes what was published with the files', async (t) => {
    const files = join(rest.test.policyFile, '..');
    const manifest = join(files, 'manifest.yaml');
    writeFileSync(
      rest.test.policyFile,
      readFileSync(rest.test.policyFile, 'utf8').replace(
        '      - { on: sample,',
        '      - { on: notes, columns: "*" }\n      - { on: sample,',
      ),
    );
    t.match(await osl(['validate', '--manifest', manifest]), { code: 2, stderr: /P0102/ });
    const both = await osl(['validate', '--manifest', manifest, '--data-dir', join(files, 'data')]);
    t.match(both, { code: 0, stdout: new RegExp(`version ${served()}`) }, both.stderr);
    await rest.test.open.reload();
    const seen = await rest.ask('user:ann', { osql: 'select count(*) from osl.entities.notes' });
    t.not(seen.json()['code'], 'E0512', 'a grant makes it visible');
  });
});
