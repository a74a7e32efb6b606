import pg from 'pg';
import tap, { type Test, test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { ENDLESS } from './fuzz/traces.js';
import { psqlScript, servePg, startBoth } from './support.js';

/** A block of a level above READ COMMITTED sees one state of the data, and holds no more than it may. */

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const skip = both === null ? 'snapshots need a native Postgres' : false;

async function connect(t: Test, user = 'user:ada'): Promise<pg.Client> {
  if (both === null) throw new Error('no native Postgres');
  const { PGPASSWORD: password = '' } = await both.gateway(user);
  const client = await connectPg({ port: both.port, user, password });
  client.on('error', () => undefined);
  t.teardown(() => client.end().catch(() => undefined));
  return client;
}

/** The gateway's sessions of this test: other tests have theirs on the same server. */
const OURS = "from pg_stat_activity where application_name = 'osl-gateway' and datname = current_database()";

/** Of another connection, committed at once. */
async function write(sql: string): Promise<void> {
  await both?.shop.engine.system.script(generatedSql(sql));
}

async function labels(client: pg.Client): Promise<string> {
  const { rows } = await client.query('select id, label from product where id = 1');
  return String(rows[0]?.label);
}

async function failure(run: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await run;
  } catch (error) {
    if (error instanceof Error && 'code' in error)
      return { code: String(error.code), message: error.message };
    throw error;
  }
  return { code: 'none', message: '' };
}

const LEVELS: readonly (readonly [how: string, ...begin: string[]])[] = [
  ['one', 'begin isolation level repeatable read'],
  ['one', 'start transaction isolation level serializable, read only'],
  ['one', 'begin', 'set transaction isolation level repeatable read, read only'],
  ['one', 'begin', "set transaction_isolation = 'serializable'"],
  ['one', 'set session characteristics as transaction isolation level repeatable read', 'begin'],
  ['one', "set default_transaction_isolation = 'repeatable read'", 'begin'],
  ['each', 'begin'],
  ['each', 'begin isolation level read committed'],
  ['each', 'begin isolation level read uncommitted'],
  ['each', "set default_transaction_isolation = 'repeatable read'", 'begin isolation level read committed'],
];

for (const [how, ...begin] of LEVELS) {
  test(`${begin.join('; ')}: ${how}`, { skip }, async (t) => {
    const client = await connect(t);
    await write("update shop.products set label = 'before' where id = 1");
    for (const text of begin) await client.query(text);
    t.equal(await labels(client), 'before');
    const first = await client.query('select now() as now from product limit 1');
    await write("update shop.products set label = 'after' where id = 1");
    t.equal(await labels(client), how === 'one' ? 'before' : 'after');
    const second = await client.query('select now() as now from product limit 1');
    t.equal(String(first.rows[0].now.getTime()) === String(second.rows[0].now.getTime()), how === 'one');
    await client.query('commit');
    t.equal(await labels(client), 'after', 'and no longer');
  });
}

test('as Postgres says it', { skip }, async (t) => {
  if (both === null) return;
  const script = `
    show transaction_isolation; show default_transaction_isolation;
    begin isolation level repeatable read; show transaction_isolation; select 1 from product where id = 1;
    set transaction isolation level serializable; show transaction_isolation; rollback;
    show transaction_isolation;
    begin; select 1 from product where id = 1; set transaction isolation level read committed; commit;
    set transaction isolation level serializable; show transaction_isolation;
    set session characteristics as transaction isolation level serializable; show transaction_isolation;
    begin; show transaction_isolation; commit; reset all; show transaction_isolation;
    set default_transaction_isolation = 'nonsense';
    begin isolation level repeatable read; set local timezone = 'Asia/Tokyo'; select placed_at from "order" where id = 1;
    set timezone = 'Asia/Seoul'; select placed_at from "order" where id = 1; savepoint a; set timezone = 'UTC';
    select placed_at from "order" where id = 1; select 1/0; rollback to a; select placed_at from "order" where id = 1;
    commit; show timezone;
    \\set FETCH_COUNT 3
    begin isolation level repeatable read; select id from "order" order by id limit 8;
    declare c cursor for select id from "order" order by id; fetch 2 from c; select count(*) from "order"; fetch 2 from c; commit;
  `;
  t.equal(await psqlScript(await both.gateway('user:ada'), script), await psqlScript(both.direct, script));
});

test('a failed statement costs no snapshot, where a savepoint stands before it', { skip }, async (t) => {
  const client = await connect(t);
  await write("update shop.products set label = 'before' where id = 1");
  await client.query('begin isolation level repeatable read');
  t.equal(await labels(client), 'before');
  await client.query('savepoint a');
  t.match(await failure(client.query('select 1/(id - id) from product')), { code: '22012' });
  t.match(await failure(labels(client)), { code: '25P02' });
  await write("update shop.products set label = 'after' where id = 1");
  await client.query('rollback to a');
  t.equal(await labels(client), 'before');
  await client.query('commit');
});

test('policy is looked at for each statement of a block', { skip }, async (t) => {
  if (both === null) return;
  const client = await connect(t);
  await client.query('begin isolation level repeatable read');
  t.match(await labels(client), /before|after/);
  const { shop } = both;
  const { writeFileSync } = await import('node:fs');
  writeFileSync(shop.policyFile, SHOP_POLICY.replaceAll('on: product', 'on: customer'));
  t.teardown(async () => {
    writeFileSync(shop.policyFile, SHOP_POLICY);
    await shop.open.reload();
  });
  await shop.open.reload();
  t.match(await failure(labels(client)), { code: /^42/ });
});

test('an upstream that dies takes its snapshot with it, and the block', { skip }, async (t) => {
  const client = await connect(t);
  await client.query('begin isolation level repeatable read');
  await labels(client);
  await client.query('savepoint a');
  await write(`select pg_terminate_backend(pid) ${OURS} and state = 'idle in transaction'`);
  t.match(await failure(labels(client)), { code: '08006' });
  t.match(await failure(labels(client)), { code: '25P02' });
  await client.query('rollback to a');
  t.match(await failure(labels(client)), { code: '08006' }, 'no later state stands in for it');
  await client.query('rollback');
  t.match(await labels(client), /before|after/);
});

test('a statement that is cancelled costs no snapshot either', { skip }, async (t) => {
  if (both === null) return;
  const client = await connect(t);
  await write("update shop.products set label = 'before' where id = 1");
  await client.query('begin isolation level repeatable read');
  t.equal(await labels(client), 'before');
  await client.query('savepoint a');
  const query = new pg.Query(ENDLESS);
  const ended = new Promise<Error>((resolve) => query.once('error', resolve));
  client.query(query);
  while ((await running()) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const canceller = new pg.Client({ host: '127.0.0.1', port: both.port }) as unknown as {
    cancel(client: pg.Client, query: pg.Query): void; // not in the types of `pg`
  };
  canceller.cancel(client, query);
  t.match(await ended, { code: '57014' });
  await write("update shop.products set label = 'after' where id = 1");
  await client.query('rollback to a');
  t.equal(await labels(client), 'before');
  await client.query('commit');
  t.equal(await labels(client), 'after');
});

/** How many of our sessions are in a state like this. */
async function sessions(state: string): Promise<number> {
  const rows = await both?.shop.engine.system.query(
    generatedSql(`select count(*)::int as n ${OURS} and usename = 'osl_reader' and state like $1`),
    [state],
  );
  return Number(rows?.[0]?.['n']);
}

const held = (): Promise<number> => sessions('idle in trans%');
const running = (): Promise<number> => sessions('active');

async function until(t: Test, wanted: number): Promise<void> {
  while ((await held()) !== wanted) await new Promise((r) => setTimeout(r, 50));
  t.equal(await held(), wanted);
}

test('blocks hold half of the pool at most, and give it back however they end', { skip }, async (t) => {
  const clients = [];
  const most = Math.floor(POOL / 2);
  const each = Math.ceil(most / 2);
  for (let i = 0; i < most; i++) {
    const client = await connect(t, i < each ? 'user:ada' : 'user:ann');
    await client.query('begin isolation level repeatable read');
    await labels(client);
    clients.push(client);
    if (i !== each - 1) continue;
    const more = await connect(t);
    await more.query('begin isolation level repeatable read');
    t.match(await failure(labels(more)), { code: '53300' }, 'one subject holds half of those at most');
  }
  t.equal(await held(), most);
  const late = await connect(t);
  await late.query('begin isolation level repeatable read');
  t.match(await failure(labels(late)), { code: '53300' });
  await late.query('rollback');
  t.match(await labels(late), /before|after/, 'whoever needs no snapshot is served');
  const [one, two, three, four] = clients;
  await one?.query('commit');
  await until(t, most - 1);
  await failure(two?.query('select no_such from product') ?? Promise.resolve());
  await two?.query('rollback');
  await until(t, most - 2);
  await three?.end();
  await until(t, most - 3);
  (four as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy(); // a client that dies
  await until(t, most - 4);
  await late.query('begin isolation level repeatable read');
  t.match(await labels(late), /before|after/, 'and there is room again');
});

/** As `OSL_POOL_SIZE` has it unless told. */
const POOL = 10;

test('the embedded engine has one session, so that such a level is refused', async (t) => {
  const shop = await startTestService({ embedded: true });
  const client = await (await servePg(t, shop)).connect('user:ada');
  t.teardown(() => client.end());
  for (const text of [
    'begin isolation level repeatable read',
    'begin isolation level serializable',
    "set default_transaction_isolation = 'serializable'",
    'set session characteristics as transaction isolation level repeatable read',
  ])
    t.match(await failure(client.query(text)), { code: '0A000', message: /embedded engine/ }, text);
  await client.query('begin isolation level read committed');
  t.equal((await client.query('show transaction_isolation')).rows[0].transaction_isolation, 'read committed');
  t.match(await failure(client.query('set transaction isolation level serializable')), { code: '0A000' });
  await client.query('rollback');
});
