import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { type Citus, NO_CITUS, startCitus } from '../../support/citus.js';
import { osl, temporary } from '../cli/support.js';

/** `osl init` and `osl doctor` on a Citus cluster: distribution columns, and row filters on other columns. */
t.setTimeout(300_000);

const TABLES = [
  'create schema app',
  'create table app.shop (org_key int4, id int4, city text, primary key (org_key, id))',
  'create table app.sale (org_key int4, id int4, shop_id int4, city text, primary key (org_key, id))',
  'create table app.kind (id int4 primary key, name text)',
  "insert into app.shop select 1 + i % 4, i, 'city ' || i % 3 from generate_series(1, 20) i",
  "insert into app.sale select 1 + i % 4, i, i, 'city ' || i % 3 from generate_series(1, 20) i",
  "insert into app.kind values (1, 'one')",
  "select create_reference_table('app.kind')",
  "select create_distributed_table('app.shop', 'org_key')",
  "select create_distributed_table('app.sale', 'org_key', colocate_with => 'app.shop')",
  'grant usage on schema app to osl_reader',
  'grant select on all tables in schema app to osl_reader',
];

const cluster = await startCitus(1, ['citus.shard_count=2']);
if (cluster === null) t.test('init and doctor on Citus', { skip: NO_CITUS }, async () => undefined);
else {
  t.teardown(() => cluster.stop());
  for (const statement of TABLES) await cluster.coordinator.query(statement);
  const env = { SHOP_URL: cluster.readerUrl };

  await t.test('init proposes the distribution column, whatever its name', async (t) => {
    const { made, dir } = await init(cluster, []);
    t.equal(made.code, 0, made.stderr);
    t.match(made.stdout, /Citus: 2 tables distributed by org_key; 1 reference table/);
    t.match(made.stdout, /sees the rows of every org_key; --rows org_key=… shows those of one/);
    const { stdout } = await osl(doctorArgs(dir), { env });
    t.match(stdout, /^ok .*Citus: 2 tables distributed by org_key; 1 reference table$/m);
    t.notMatch(stdout, /reads every shard/, 'grants without a filter');
  });

  await t.test('a filter on another column is warned of, by init and by doctor', async (t) => {
    const { made, dir } = await init(cluster, ['--rows', 'city=city 1']);
    t.match(
      made.stderr,
      /warning: rows are filtered on city, but Citus distributes app\.sale, app\.shop by org_key: each query reads every shard/,
    );
    const policy = join(dir, 'policy.yaml');
    const document = parse(readFileSync(policy, 'utf8'));
    const filters = {
      own: "org_key = attribute('tenant')",
      listed: "org_key in (1, 2) and city = 'city 1'",
      arms: "org_key = 1 or (org_key = 2 and city = 'city 1')",
      ranged: 'org_key > 1',
      compared: 'org_key = id',
      either: "org_key = 1 or city = 'city 1'",
    };
    for (const [role, rows] of Object.entries(filters))
      document.roles[role] = { grants: [{ on: 'sale', columns: ['id'], rows }] };
    delete document.roles.analyst;
    document.subjects['user:first'] = { ceiling: Object.keys(filters), attributes: { tenant: 1 } };
    writeFileSync(policy, stringify(document));
    const { stdout } = await osl(doctorArgs(dir), { env });
    t.match(
      stdout,
      /^warn .*`sale` is distributed by org_key, but the row filter of 3 roles \(ranged, compared, either\) does not compare it/m,
    );
    t.notMatch(stdout, /`(kind|shop)` is distributed/, 'a reference table, and a table without a filter');
  });
}

async function init({ readerUrl }: Citus, flags: readonly string[]) {
  const dir = join(temporary(), 'new');
  const args = ['init', dir, '--yes', '--subject', 'user:first', '--url-env', 'SHOP_URL', ...flags];
  return { dir, made: await osl(args, { env: { SHOP_URL: readerUrl } }) };
}

function doctorArgs(dir: string): string[] {
  return [
    'doctor',
    '--manifest',
    join(dir, 'manifest.yaml'),
    '--policy',
    join(dir, 'policy.yaml'),
    '--data-dir',
    join(dir, '.osl'),
  ];
}
