import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import tap, { test } from 'tap';
import { sql } from '../../src/base/sql.js';
import { RollupMonitor } from '../../src/content/rollups/rollups.js';
import { nativeOfRun } from '../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../support/shop.js';
import { servePg } from '../surfaces/pg/support.js';
import { type Reply, startRest, eventually as until } from '../surfaces/rest/fixture.js';

/*
 * Rollups of a running server: built by the command, taken up, told of, and left where they are too old, of another
 * definition, or not what a caller may be answered from. That their answers are right: test/proof/oracle.
 */

const ROLLUPS = `
rollups:
  by_region:
    entity: order
    dimensions: [region, customer_id]
    time: { column: placed_at, grain: day }
    measures: [amount, quantity]
    max_age: 86400
`;
const MANIFEST = SHOP_MANIFEST.replace(
  'columns: [id, customer_id, region, quantity, amount, placed_at, note]',
  'columns: [id, customer_id, region, quantity, amount, placed_at, note]\n    time_dimension: placed_at\n    cache: { max_age: 3600 }',
).replace('facets:', `${ROLLUPS.trim()}\nfacets:`);
const MAIN = join(process.cwd(), 'bin/osl.js');

const postgres = await nativeOfRun();
if (postgres === null) tap.pass('no native Postgres for this run');
else {
  const rest = await startRest({ postgres, manifest: MANIFEST });
  const { connect } = await servePg(tap, rest.test);
  tap.setTimeout(90_000);
  tap.teardown(async () => {
    await rest.server.close(1_000);
    await postgres.stop();
  });
  suite(rest, connect);
}

type Rest = Awaited<ReturnType<typeof startRest>>;
type Connect = Awaited<ReturnType<typeof servePg>>['connect'];

function suite(rest: Rest, connect: Connect): void {
  const { test: shop } = rest;
  const { system } = shop.engine;
  const dir = dirname(shop.policyFile);
  const manifestFile = join(dir, 'manifest.yaml');
  const osl = async (...args: string[]): Promise<string> => {
    const files = ['--manifest', manifestFile, '--policy', shop.policyFile, '--data-dir', join(dir, 'data')];
    const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'rollup', ...args, ...files]);
    return stdout;
  };
  const QUESTION =
    'select region, count(*) as n, sum(amount) as total, avg(quantity) as mean from "order" group by region order by region';
  const ask = (
    user: string,
    body: object = { osql: QUESTION },
    headers: Record<string, string> = {},
  ): Promise<Reply> => rest.ask(user, body, { headers });
  const from = (reply: Reply): unknown => (reply.json()['freshness'] as { from?: string } | undefined)?.from;
  const rows = (reply: Reply): unknown => reply.json()['rows'];
  const unused = async (user: string, osql: string): Promise<unknown> => {
    const plan = (await ask(user, { osql, explain: true })).json()['plan'] as {
      detail: Record<string, unknown>;
    };
    return (plan.detail['rollups_not_used'] as Record<string, string> | undefined)?.['by_region'];
  };
  let live: unknown;

  test('a monitor that is closed reads no more', async (t) => {
    let reads = 0;
    const { manifest } = shop.service.model();
    const monitor = new RollupMonitor(
      () => manifest,
      async () => {
        reads += 1;
        return [];
      },
      (_, error) => t.error(error),
    );
    await monitor.start();
    monitor.close();
    t.equal(reads, 1);
    await sleep(1_300); // it reads once a second
    t.equal(reads, 1);
  });

  test('what is not built is not used, and EXPLAIN says so', async (t) => {
    t.match(await osl('status'), /by_region \(order\): not built/);
    const reply = await ask('user:ada');
    t.equal(from(reply), 'live');
    live = rows(reply);
    t.equal(await unused('user:ada', QUESTION), 'it is not built, or too old');
  });

  test('once it is built questions are answered from it, and say how old they are', async (t) => {
    t.match(await osl('build'), /^by_region: \d+ rows in /);
    await until(async () => from(await ask('user:ada')) === 'rollup');
    const reply = await ask('user:ada');
    t.same(rows(reply), live);
    t.match(reply.headers['age'], /^\d+$/);
    t.match(await osl('status'), /used; \d+ rows, as of 20/);
    const explained = (await ask('user:ada', { osql: QUESTION, explain: true })).text;
    t.match(explained, '"rollup":"by_region"');
    t.same(reply.json()['versions'], (await ask('user:ann')).json()['versions']);
  });

  test('what came later is in the next build, and in answers that must be of now', async (t) => {
    await system.script(
      sql`insert into shop.orders values (2000, 1, 'eu', 1, 1000, '2026-03-01 00:00:00+00', null)`,
    );
    t.same(rows(await ask('user:ada')), live);
    const now = await ask('user:ada', { osql: QUESTION }, { 'cache-control': 'no-cache' });
    t.notSame(rows(now), live);
    t.equal(from(now), 'live');
    const client = await connect('user:ada');
    t.teardown(() => client.end());
    const totals = async (): Promise<string> => JSON.stringify((await client.query(QUESTION)).rows);
    const old = await totals();
    t.match((await client.query('show osl.freshness')).rows[0]['osl.freshness'], /^rollup, as of /);
    await client.query('begin');
    t.not(await totals(), old, 'a transaction sees what is there');
    await client.query('commit');
    for (let i = 0; i < 3; i++) t.equal(await totals(), old);
    await client.query('set osl.cache = off');
    t.not(await totals(), old);
    await client.query('reset osl.cache');
    const named = { name: 'kept', text: QUESTION };
    t.equal(JSON.stringify((await client.query(named)).rows), old);
    await client.query('begin');
    t.not(JSON.stringify((await client.query(named)).rows), old, 'also by what was prepared before it began');
    await client.query('commit');
    await osl('build', 'by_region');
    await until(async () => JSON.stringify(rows(await ask('user:ada'))) === JSON.stringify(rows(now)));
    await system.script(sql`delete from shop.orders where id = 2000`);
    await osl('build');
    await until(async () => JSON.stringify(rows(await ask('user:ada'))) === JSON.stringify(live));
  });

  test('metrics by a period that its days make up', async (t) => {
    const body = {
      metrics: ['revenue'],
      group_by: ['metric_time__month'],
      time_constraint: { start: '2026-01-02', end: '2026-01-31' },
    };
    const over = await ask('user:ada', body);
    t.equal(from(over), 'rollup');
    const now = await ask('user:ada', body, { 'cache-control': 'no-cache' });
    t.equal(from(now), 'live');
    t.same(rows(over), rows(now));
    t.equal(
      from(await ask('user:ada', { ...body, group_by: ['metric_time__hour'] })),
      'live',
      'hours are no days',
    );
  });

  test('a period in UTC, and bounds at which one begins, are read from it in OSL-SQL too', async (t) => {
    const monthIn = (zone: string, where = ''): string =>
      `select date_trunc('month', placed_at at time zone '${zone}') as m, sum(amount) from "order" ${where} group by m order by m`;
    const bounds = `where placed_at >= '2026-01-02 00:00:00+00' and placed_at < '2026-02-01 00:00:00+00'`;
    for (const [osql, source] of [
      [monthIn('UTC'), 'rollup'],
      [monthIn('Europe/Berlin'), 'live'],
      [monthIn('UTC', bounds), 'rollup'],
      [monthIn('UTC', bounds.replace('02 00:00:00', '02 05:00:00')), 'live'],
    ] as const) {
      const reply = await ask('user:ada', { osql });
      t.equal(from(reply), source, osql);
      t.same(rows(reply), rows(await ask('user:ada', { osql }, { 'cache-control': 'no-cache' })));
    }
  });

  test('each caller is answered as their grants allow', async (t) => {
    const eu = await ask('user:eu');
    t.equal(from(eu), 'rollup', 'the row filter reads a dimension');
    t.match(rows(eu), [{ region: 'eu' }]);
    t.equal((rows(eu) as object[]).length, 1);
    t.equal((await ask('user:nil')).status, 403);
    const policies: Readonly<Record<string, readonly [from: string, to: string, why: string]>> = {
      'a filter of what is not a dimension': [
        `- { on: order, columns: "*", rows: "region = attribute('region')" }`,
        `- { on: order, columns: "*", rows: "quantity > 3" }`,
        'a row filter of the grants reads what is not a dimension',
      ],
      'a minimum group size': [
        `- { on: order, columns: "*", rows: "region = attribute('region')" }`,
        `- { on: order, columns: "*", min_group_size: 5 }`,
        'a minimum group size applies',
      ],
    };
    t.teardown(async () => {
      writeFileSync(shop.policyFile, SHOP_POLICY);
      await shop.open.reload();
    });
    for (const [name, [before, after, why]] of Object.entries(policies)) {
      writeFileSync(shop.policyFile, SHOP_POLICY.replace(before, after));
      await shop.open.reload();
      const reply = await ask('user:eu');
      t.equal(from(reply), 'live', name);
      t.notSame(rows(reply), rows(eu), name);
      t.equal(await unused('user:eu', QUESTION), why);
    }
  });

  test('of another definition, or too old, it is not used', async (t) => {
    const text = readFileSync(manifestFile, 'utf8');
    const serve = async (manifest: string): Promise<void> => {
      writeFileSync(manifestFile, manifest);
      await shop.open.reload();
    };
    t.teardown(() => serve(text));
    await serve(text.replace('measures: [amount, quantity]', 'measures: [quantity, amount]'));
    t.equal(from(await ask('user:ada')), 'live');
    t.match(await osl('status'), /not used, since it was built of another definition/);
    await serve(text.replace('max_age: 86400', 'max_age: 1'));
    await until(async () => from(await ask('user:ada')) !== 'rollup');
    t.equal(await unused('user:ada', QUESTION), 'it is not built, or too old');
    await serve(text);
    t.equal(from(await ask('user:ada')), 'rollup');
    await system.script(sql`delete from osl_rollups.state`);
    await until(async () => from(await ask('user:ada')) !== 'rollup');
    t.same(rows(await ask('user:ada')), live);
  });

  test('the tables of rollups are nobody’s to name', async (t) => {
    for (const sql of ['select * from osl_rollups.state', 'select * from osl_rollups.by_region'])
      t.equal((await ask('user:ada', { sql })).status, 403, sql);
    const names = await ask('user:ada', { osql: 'select sum("#s1") as x from "order"' });
    t.equal(names.status, 400);
  });
}
