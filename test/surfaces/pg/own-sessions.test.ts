import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { startTestService } from '../../support/service.js';
import { ENDLESS } from './fuzz/traces.js';
import { servePg } from './support.js';

/** A caller sees its own sessions, cancels and ends them, and knows of no others. */

const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
tap.setTimeout(600_000);
tap.teardown(() => catalogs.close());

const shop = await startTestService({});
const { connect } = await servePg(tap, shop, { catalogs });

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
