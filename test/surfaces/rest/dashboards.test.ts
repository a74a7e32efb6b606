import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'tap';
import { SALES } from '../../console/support/sales.js';
import { temporary } from '../../tools/cli/support.js';
import { startRest } from './fixture.js';

const PANEL = '{ title: Revenue, metrics: [revenue], period: last 12 months }';
const YAML = `osl_dashboard: 1
title: Sales
roles: [analyst, regional]
panels:
  - ${PANEL}
`;
const JSON_FILE = JSON.stringify({
  osl_dashboard: 1,
  title: 'Audits',
  roles: ['auditor'],
  panels: [
    { title: 'Orders', metrics: ['orders'], group_by: [{ name: 'metric_time', grain: 'week' }] },
    { title: 'All orders', metrics: ['orders'] },
    { title: 'All orders', metrics: ['orders'] },
  ],
});

/** A folder with these files. */
function folderOf(files: Readonly<Record<string, string>>): string {
  const dir = join(temporary(), 'dashboards');
  mkdirSync(dir);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

test('shared dashboards are listed by role, and checked before they are', { timeout: 120_000 }, async (t) => {
  const dashboardsDir = folderOf({ 'b.yaml': YAML, 'a.json': JSON_FILE, 'notes.txt': 'no dashboard' });
  const rest = await startRest({ ...SALES, settings: { dashboardsDir } });
  t.teardown(() => rest.close());
  const list = async (subject: string, claims = {}, path = '/osl/dashboards') => {
    const authorization = `Bearer ${await rest.test.token(subject, claims)}`;
    return rest.send(path, { headers: { authorization } });
  };
  const titles = async (subject: string, claims = {}): Promise<readonly string[]> => {
    const { dashboards } = (await list(subject, claims)).json() as {
      readonly dashboards: readonly { readonly title: string }[];
    };
    return dashboards.map(({ title }) => title);
  };

  await t.test('each caller has those of their roles', async (t) => {
    t.strictSame(await titles('user:ann'), ['Sales']);
    t.strictSame(await titles('user:eu'), ['Sales']);
    t.strictSame(await titles('user:ada'), ['Audits']);
    t.strictSame(await titles('user:sum'), []);
    t.strictSame(await titles('user:nil'), []);
    t.strictSame(await titles('user:ada', { chain: ['user:ada', 'user:ann'] }), [], 'of the whole chain');
    t.strictSame(
      await titles('user:nil', { aclRoles: ['analyst'] }),
      [],
      'a claim beyond the ceiling is none',
    );
    const reply = await list('user:ann');
    t.strictSame(reply.json(), {
      request_id: reply.requestId,
      dashboards: [
        {
          osl_dashboard: 1,
          title: 'Sales',
          panels: [{ title: 'Revenue', metrics: ['revenue'], period: 'last 12 months' }],
        },
      ],
    });
    t.match(await rest.trail(reply.requestId), [
      { kind: 'decision', action: 'dashboards', subject: 'user:ann', decision: 'allow' },
      { kind: 'outcome', outcome: 'ok' },
    ]);
    t.equal((await rest.send('/osl/dashboards')).status, 403);
    t.match((await list('user:ann', {}, '/osl/dashboards?x=1')).json(), { code: 'E0511' });
  });

  await t.test('a reload takes all files or none', async (t) => {
    writeFileSync(join(dashboardsDir, 'b.yaml'), YAML.replace('title: Sales', 'title: Turnover'));
    t.ok((await rest.test.open.reload()).now.includes('2 shared dashboards'));
    t.strictSame(await titles('user:ann'), ['Turnover']);
    const faults: readonly (readonly [string, RegExp])[] = [
      [YAML.replace('metrics: [revenue]', 'metrics: []'), /b\.yaml:5:/],
      [YAML.replace('roles: [analyst, regional]\n', ''), /b\.yaml:1:1.*roles/s],
      [YAML.replace('panels', 'colour: red\npanels'), /b\.yaml:4:1.*colour/s],
      [YAML.replace('last 12 months', 'soon'), /b\.yaml:5:/],
      [YAML.replace('osl_dashboard: 1', 'osl_dashboard: 2'), /b\.yaml:1:/],
      [YAML.replace('title: Sales', 'title: Audits'), /another file has the title/],
      ['{', /b\.yaml/],
    ];
    for (const [text, expected] of faults) {
      writeFileSync(join(dashboardsDir, 'b.yaml'), text);
      await t.rejects(rest.test.open.reload(), { message: expected }, String(expected));
    }
    t.strictSame(await titles('user:ann'), ['Turnover'], 'the last valid ones stay');
    writeFileSync(join(dashboardsDir, 'b.yaml'), YAML);
  });

  await t.test('a folder that cannot be read stops the start', async (t) => {
    rmSync(join(dashboardsDir, 'a.json'));
    const missing = { settings: { dashboardsDir: join(dashboardsDir, 'none') } };
    await t.rejects(startRest({ ...SALES, ...missing }), /OSL_DASHBOARDS: .* cannot be read \(ENOENT\)/);
  });
});
