import { connect } from 'node:net';
import pg from 'pg';
import postgres from 'postgres';
import tap, { test } from 'tap';
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
