import type pg from 'pg';
import tap, { test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { startTestService } from '../../support/service.js';
import { connectTo } from './asked.js';
import { servePg, startBoth } from './support.js';

const ROWS = 120_000;
const FILL = `INSERT INTO shop.orders
  SELECT n, 1, 'eu', 1, 1, now(), repeat('x', 600) FROM generate_series(1001, ${1000 + ROWS}) AS n`;
const BIG = 'select id, note from "order" where id > 1000';

const both = await startBoth();
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres' : false;
if (both !== null) await both.shop.engine.system.script(generatedSql(FILL));

async function connect(env: NodeJS.ProcessEnv): Promise<pg.Client> {
  const client = await connectTo(env);
  client.on('error', () => undefined);
  return client;
}

test('a result larger than what a portal holds comes in portions', { skip }, async (t) => {
  if (both === null) return;
  const client = await connect(await both.gateway('user:ada'));
  t.teardown(() => client.end());
  await client.query('begin');
  await client.query(`declare c cursor for ${BIG}`);
  let seen = 0;
  for (;;) {
    const { rows } = await client.query('fetch 20000 from c');
    if (rows.length === 0) break;
    t.equal(rows[0].note.length, 600);
    seen += rows.length;
  }
  t.equal(seen, ROWS);
  await client.query('commit');
});

test('who leaves in the middle, or cancels, frees the session of the upstream', { skip }, async (t) => {
  if (both === null) return;
  for (let i = 0; i < 30; i++) {
    const client = await connect(await both.gateway('user:ada'));
    await client.query('begin');
    await client.query(`declare c cursor for ${BIG}`);
    t.equal((await client.query('fetch 10 from c')).rows.length, 10);
    if (i % 3 === 0) await client.query('close c');
    else if (i % 3 === 1) await client.query('rollback');
    await client.end();
  }
  const client = await connect(await both.gateway('user:ada'));
  t.teardown(() => client.end());
  t.same((await client.query('select count(*)::int as n from "order" where id > 1000')).rows, [{ n: ROWS }]);
});

test('the embedded engine has one session, so there a portal that large is refused', async (t) => {
  const shop = await startTestService({ embedded: true });
  await shop.engine.system.script(generatedSql(FILL));
  const client = await (await servePg(t, shop)).connect('user:ada');
  t.teardown(() => client.end());
  await client.query('begin');
  await client.query(`declare c cursor for ${BIG}`);
  const all = async (): Promise<void> => {
    for (let i = 0; i < ROWS / 10_000 + 1; i++) await client.query('fetch 10000 from c');
  };
  await t.rejects(all(), { code: '54000' });
  await client.query('rollback');
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }]);
});
