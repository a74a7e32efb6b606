import { connect } from 'node:net';
import pg from 'pg';
import postgres from 'postgres';
import tap, { test } from 'tap';
import { startPgBouncer } from '../../../bench/support/pgbouncer.js';
import { CUSTOMER_COLUMNS, ENDLESS, MANY, startGateway, TABLES } from './support.js';

const gateway = await startGateway();
tap.teardown(() => gateway.close());

const LIST = "select table_name from information_schema.tables where table_schema = 'entities' order by 1";
const COLUMNS =
  "select column_name from information_schema.columns where table_name = 'customer' order by ordinal_position";
const PERSON = 'select name, email from customer where id = $1 and region = $2';

async function credentials(): Promise<{
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
}> {
  const { PGPASSWORD: password = '' } = await gateway.environment('user:ann');
  return { host: '127.0.0.1', port: gateway.port, user: 'user:ann', password, database: 'osl' };
}

/** `pg` sends its key in a CancelRequest of a connection of its own; it has no call for that. */
async function cancel(client: pg.Client): Promise<void> {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const request = Buffer.alloc(16);
  for (const [i, word] of [16, 80_877_102, processID, secretKey].entries()) request.writeInt32BE(word, 4 * i);
  connect(gateway.port, '127.0.0.1').end(request);
}

test('pg', async (t) => {
  const client = new pg.Client(await credentials());
  await client.connect();
  t.teardown(() => client.end());
  t.same(
    (await client.query(LIST)).rows.map((r) => r.table_name),
    TABLES,
  );
  t.same(
    (await client.query(COLUMNS)).rows.map((r) => r.column_name),
    CUSTOMER_COLUMNS,
  );
  for (const name of ['same', 'same', undefined])
    t.same(
      (await client.query({ ...(name === undefined ? {} : { name }), text: PERSON, values: [1, 'eu'] })).rows,
      [{ name: 'Ada', email: '[redacted]' }],
    );
  t.equal((await client.query('select id, amount from "order" where id > 1000')).rows.length, MANY);
  const endless = client.query(ENDLESS);
  setTimeout(() => void cancel(client), 700);
  await t.rejects(endless, { code: '57014' });
  await t.rejects(client.query('select no_such from customer'), { code: '42703' });
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }]);
});

test('postgres', async (t) => {
  const { user, ...rest } = await credentials();
  const sql = postgres({ ...rest, username: user, max: 2, onnotice: () => undefined });
  t.teardown(() => sql.end());
  t.same(
    (await sql.unsafe(LIST)).map((r) => r['table_name']),
    TABLES,
  );
  t.same(
    (await sql.unsafe(COLUMNS)).map((r) => r['column_name']),
    CUSTOMER_COLUMNS,
  );
  t.same(
    [...(await sql`select name, email from customer where id = ${1} and region = ${'eu'}`)],
    [{ name: 'Ada', email: '[redacted]' }],
  );
  let rows = 0;
  await sql`select id, amount from "order" where id > ${1000}`.cursor(7000, (portion) => {
    rows += portion.length;
  });
  t.equal(rows, MANY);
  const endless = sql.unsafe(ENDLESS);
  setTimeout(() => endless.cancel(), 700);
  await t.rejects(Promise.resolve(endless), { code: '57014' });
  await t.rejects(Promise.resolve(sql.unsafe('select no_such from customer')), { code: '42703' });
  const inOne = await sql.begin(
    'read only',
    async (tx) => (await tx`select count(*)::int as n from customer`)[0],
  );
  t.same(inOne, { n: 4 });
  t.same([...(await sql`select 1 as one`)], [{ one: 1 }]);
});

/** Rows that three transactions of a pool see: a row each, the error of a savepoint, and of the second one more. */
const IN_A_POOL = [1, '42703', 2, '42703', '22012', 3, '42703'];

async function throughPool(pool: pg.Pool, name?: string): Promise<readonly unknown[]> {
  const got: unknown[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const client = await pool.connect();
    try {
      await client.query("begin; set local timezone = 'Asia/Tokyo'; savepoint a");
      const asked = { text: 'select id from customer where id = $1', values: [turn + 1] };
      got.push((await client.query(name === undefined ? asked : { ...asked, name })).rows[0].id);
      await client
        .query('select no_such from customer')
        .catch((error: { code: string }) => got.push(error.code));
      await client.query('rollback to a');
      if (turn === 1) await client.query('select 1/0');
      await client.query('commit');
    } catch (error) {
      got.push((error as { code: string }).code); // an error of the server
      await client.query('rollback');
    } finally {
      client.release();
    }
  }
  got.push((await pool.query('show timezone')).rows[0].TimeZone);
  return got;
}

test('the pool of pg', async (t) => {
  const pool = new pg.Pool({ ...(await credentials()), max: 1 });
  t.teardown(() => pool.end());
  t.strictSame(await throughPool(pool, 'person'), [...IN_A_POOL, 'UTC']);
});

test('transactions of postgres, and a connection that is reserved', async (t) => {
  const { user, ...rest } = await credentials();
  const sql = postgres({ ...rest, username: user, max: 1, onnotice: () => undefined });
  t.teardown(() => sql.end());
  const got: unknown[] = [];
  const note = (error: { code: string }): number => got.push(error.code);
  for (let turn = 0; turn < 3; turn++)
    await sql
      .begin('isolation level read committed', async (tx) => {
        got.push((await tx`select id from customer where id = ${turn + 1}`)[0]?.['id']);
        await tx.savepoint((point) => point`select no_such from customer`).catch(note);
        if (turn === 1) await tx`select 1/0`;
      })
      .catch(note);
  const own = await sql.reserve();
  got.push((await own`show timezone`)[0]?.['TimeZone']);
  own.release();
  t.strictSame(got, [...IN_A_POOL, 'UTC']);
});

const BOUNCED: readonly (readonly [mode: 'session' | 'transaction', more: string])[] = [
  ['session', 'server_reset_query = DISCARD ALL\nserver_check_query = select 1\nserver_check_delay = 0'],
  [
    'session',
    'server_reset_query = RESET ALL; DEALLOCATE ALL; CLOSE ALL; UNLISTEN *\nserver_check_query = <empty>',
  ],
  ['transaction', 'server_reset_query_always = 1\nignore_startup_parameters = extra_float_digits'],
];

for (const [mode, more] of BOUNCED)
  test(`pgbouncer, ${mode}: ${more.split('\n')[0]}`, async (t) => {
    const { user, password, port } = await credentials();
    const url = `postgres://${encodeURIComponent(user)}:${password}@127.0.0.1:${port}/osl`;
    const bouncer = await startPgBouncer(url, 1, mode, more);
    if (bouncer === null) {
      t.plan(0, 'pgbouncer is not installed here');
      return;
    }
    t.teardown(() => bouncer.stop());
    for (const zone of ['UTC', 'Europe/Berlin']) {
      const place = { host: '127.0.0.1', port: bouncer.port, user, database: 'bench' };
      const pool = new pg.Pool({ ...place, max: 1 });
      // What a client sets is its own: pgbouncer resets it, or tells the next client's.
      if (zone !== 'UTC') await pool.query(`set timezone = '${zone}'`);
      t.strictSame(await throughPool(pool), [...IN_A_POOL, zone]);
      await pool.end();
    }
    const next = new pg.Client({ host: '127.0.0.1', port: bouncer.port, user, database: 'bench' });
    await next.connect();
    t.strictSame((await next.query('show timezone')).rows, [{ TimeZone: 'UTC' }]);
    await next.end();
  });
