import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { startTestService } from '../../support/service.js';
import { ENDLESS } from './fuzz/traces.js';
import { decisionsAfter, servePg } from './support.js';

tap.setTimeout(600_000);

/** EXPLAIN over the wire: the governed plan, and nothing of the database's. */

const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
tap.teardown(() => catalogs.close());

const shop = await startTestService({});
const { connect } = await servePg(tap, shop, { catalogs });

async function explained(
  client: pg.Client,
  text: string,
  values: readonly unknown[] = [],
): Promise<string[]> {
  const { rows } = await client.query({ text, values: [...values], rowMode: 'array' });
  return rows.map(([line]) => line);
}

const JOIN = 'select c.region, count(*) from customer c join "order" o on o.customer_id = c.id group by 1';

test('a plan in lines: what is read, by which grants, and what is masked', async (t) => {
  const client = await connect('user:eu');
  const lines = await explained(client, `explain ${JOIN}`);
  t.match(lines[0], /^Select {2}\(grouped\)$/);
  t.match(
    lines.join('\n'),
    / {2}-> {2}Inner join[\s\S]*-> {2}Scan on osl\.entities\.customer {2}\(row filter: applied/,
  );
  t.match(lines.at(-2), /^Objects: osl\.entities\.(customer|order), osl\.entities\.(customer|order)$/);
  t.match(lines.at(-1), /^Grants: g/);
  t.notMatch(lines.join('\n'), /shop\.|rows=|cost=/, 'no table of the source, no estimate');
  await client.end();
});

test('a plan as JSON, with the members that tools draw', async (t) => {
  const client = await connect('user:eu');
  const [text = ''] = await explained(client, `EXPLAIN (FORMAT JSON, COSTS off) ${JOIN}`);
  const [{ Plan: plan, Objects: objects }] = text as unknown as [{ Plan: Plan; Objects: string[] }];
  t.equal(plan['Node Type'], 'Select');
  const [join] = plan.Plans ?? [];
  t.same(join?.Plans?.map((p) => p['Relation Name']).sort(), ['osl.entities.customer', 'osl.entities.order']);
  t.same([...objects].sort(), ['osl.entities.customer', 'osl.entities.order']);
  await client.end();
});

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Plans?: readonly Plan[];
}

test('the question of an EXPLAIN is found behind any options, and at its place', async (t) => {
  const client = await connect('user:ada');
  const plain = await explained(client, 'explain select id from customer where id = 1');
  for (const text of [
    'explain verbose select id from customer where id = 1;',
    'explain (analyze off, verbose) select id from customer where id = 1',
    'explain (select id from customer where id = 1)',
    'explain (costs) (((select id from customer where id = 1)))',
    '/* ) */ explain ( -- (\n summary ) select id from customer where id = 1',
  ])
    t.same(await explained(client, text), plain, text);
  t.same(await explained(client, 'explain select id from customer where id = $1', [1]), plain);
  t.match(await explained(client, 'explain with a as (select 1) select * from a'), ['Select']);
  const failure = await client.query('explain (costs off) select nope from customer').catch((e) => e);
  t.match(failure, { code: '42703', position: '28' });
  await client.end();
});

test('a right guess of a hidden value looks like a wrong one', async (t) => {
  const client = await connect('user:ann');
  for (const [right, wrong] of [
    ["tax_no = 'DE1'", "tax_no = 'XX9'"],
    ["email = 'ada@eu.example'", "email = 'nobody@eu.example'"],
    ['id = 1', 'id = 999'],
  ] as const)
    t.same(
      await explained(client, `explain select * from customer where ${right}`),
      await explained(client, `explain select * from customer where ${wrong}`),
      right,
    );
  await client.end();
});

test('what an EXPLAIN refuses', async (t) => {
  const client = await connect('user:ada');
  const refused: readonly (readonly [string, string])[] = [
    ['explain analyze select id from customer', '0A000'],
    ['explain (analyze) select id from customer', '0A000'],
    ['explain (analyze true, format json) select id from customer', '0A000'],
    ['explain (analyze maybe) select id from customer', '42601'],
    ['explain (analyze off, analyze on) select id from customer', '0A000'],
    ['explain (nonsense) select id from customer', '42601'],
    ['explain (format xml) select id from customer', '0A000'],
    ['explain (format nonsense) select id from customer', '22023'],
    ['explain delete from customer', '0A000'],
    ['explain execute q', '0A000'],
    ['explain select 1 from customer, pg_class', '0A000'],
    ['explain select 1 from nowhere', '42P01'],
  ];
  for (const [text, code] of refused) t.match(await client.query(text).catch((e) => e), { code }, text);
  t.match(await explained(client, 'explain select relname from pg_class'), [/Seq Scan on pg_class/]);
  await client.end();
});

test('an EXPLAIN is on record as one, whether it is described first or not', async (t) => {
  const client = await connect('user:ada');
  const known = (await shop.records()).length;
  await explained(client, 'explain select id from customer');
  await explained(client, 'explain select id from customer where id = $1', [1]);
  const decisions = await decisionsAfter(shop, known, 2);
  t.same(
    decisions.map(({ action, decision, objects }) => [action, decision, objects]),
    [
      ['explain', 'allow', ['osl.entities.customer']],
      ['explain', 'allow', ['osl.entities.customer']],
    ],
  );
  await client.end();
});

test('a temporary table is refused by its name, with what to write instead', async (t) => {
  const client = await connect('user:ada');
  for (const text of [
    'create temp table t as select id from customer',
    'create temporary table "#Tableau_1" (x int)',
    'create local temporary table t (x int) on commit preserve rows',
    'select id into temp t from customer',
  ])
    t.match(await client.query(text).catch((e) => e), {
      code: '25006',
      message: 'temporary tables are not supported: OSL-SQL is read-only',
      hint: 'use a WITH query in the statement that reads it',
    });
  t.match(await client.query('create table t (x int)').catch((e) => e), { code: '25006', message: /CREATE/ });
  await client.end();
});

/** A caller sees its own sessions, cancels and ends them, and knows of no others. */

/** The first value of the first row. */
async function one(client: pg.Client, text: string, values: readonly unknown[] = []): Promise<unknown> {
  const { rows } = await client.query({ text, values: [...values], rowMode: 'array' });
  return rows[0]?.[0];
}

async function pidOf(client: pg.Client): Promise<number> {
  return Number(await one(client, 'select pg_backend_pid()'));
}

async function states(client: pg.Client): Promise<readonly string[]> {
  const text = 'select state from pg_stat_activity where pid <> pg_backend_pid() order by backend_start';
  return (await client.query(text)).rows.map(({ state }) => state);
}

async function settled(check: () => Promise<boolean>): Promise<void> {
  while (!(await check())) await pause(10);
}

test('what one caller sees: its own sessions, what they run, and nobody else', async (t) => {
  const [first, second, third, stranger] = await Promise.all(
    ['user:ada', 'user:ada', 'user:ada', 'user:ann'].map((user) => connect(user)),
  );
  if (!first || !second || !third || !stranger) throw new Error('four sessions');
  await third.query('begin');
  await third.query('select nothing').catch(() => undefined);
  await second.query("set application_name = 'a dashboard'");
  await second.query('begin');
  t.same(await states(first), ['idle in transaction', 'idle in transaction (aborted)']);
  t.equal(
    await one(
      first,
      "select usename || ' ' || datname from pg_stat_activity where application_name = 'a dashboard'",
    ),
    'user:ada osl',
  );
  t.equal(
    await one(first, 'select query from pg_stat_activity where pid = $1', [await pidOf(first)]),
    'select query from pg_stat_activity where pid = $1',
  );
  t.equal(await one(stranger, 'select count(*) from pg_stat_activity'), '1');
  t.equal(await one(first, 'select count(*) from pg_locks where pid <> pg_backend_pid()'), '2');
  await second.query('rollback');
  const running = second.query(ENDLESS).catch((error) => error);
  const active = "select query from pg_stat_activity where state = 'active' and pid <> pg_backend_pid()";
  await settled(async () => (await one(first, active)) === ENDLESS);
  t.equal(await one(first, active), ENDLESS);
  t.equal(
    await one(first, 'select pg_cancel_backend(pid) from pg_stat_activity where application_name = $1', [
      'a dashboard',
    ]),
    true,
  );
  t.match(await running, { code: '57014' });
  for (const client of [first, second, third, stranger]) await client.end();
});

test("nobody's sessions but one's own are cancelled or ended", async (t) => {
  const [own, stranger] = [await connect('user:ada'), await connect('user:ann')];
  const pid = await pidOf(stranger);
  const running = stranger.query(ENDLESS).catch((error) => error);
  const heard: string[] = [];
  own.on('notice', ({ message }) => heard.push(message ?? ''));
  for (const what of ['cancel', 'terminate'])
    t.equal(await one(own, `select pg_${what}_backend($1)`, [pid]), false);
  t.same(heard, Array(2).fill(`PID ${pid} is not a PostgreSQL server process`), 'as for one that is nowhere');
  t.equal(await Promise.race([running, pause(200, 'it runs')]), 'it runs');
  (stranger as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  await running;
  await own.end();
});

test('a session that is ended hears so, and one that cancels itself', async (t) => {
  const [own, other] = [await connect('user:ada'), await connect('user:ada')];
  const ended = new Promise((resolve) => other.once('error', resolve));
  t.equal(await one(own, 'select pg_terminate_backend($1)', [await pidOf(other)]), true);
  t.match(await ended, { code: '57P01' });
  t.match(await own.query('select pg_cancel_backend(pg_backend_pid())').catch((e) => e), { code: '57014' });
  t.equal(await one(own, 'select pg_cancel_backend(null)'), null);
  const last = new Promise((resolve) => own.once('error', resolve));
  await own.query('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined);
  t.match(await last, { code: '57P01' });
});

test('an agent that asks for somebody does not see what this person asks, nor the other way', async (t) => {
  const person = await connect('user:ada');
  const agent = await connect('user:ada', await shop.token('user:ada', { chain: ['user:ann', 'user:ada'] }));
  for (const client of [person, agent])
    t.equal(await one(client, 'select count(*) from pg_stat_activity'), '1');
  for (const client of [person, agent]) await client.end();
});

test('what is asked of sessions is bounded, as is what their caller may do to them', async (t) => {
  const client = await connect('user:ada');
  const many = 'select count(pg_cancel_backend(pg_backend_pid())) from generate_series(1, 1000)';
  t.match(await client.query(many).catch((e) => e), { code: '54000' });
  t.equal(await one(client, 'select count(*) from pg_stat_activity'), '1');
  await client.end();
});
