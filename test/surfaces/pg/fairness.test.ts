import { spawn } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import tap, { type Test, test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService, type TestService } from '../../support/service.js';
import { SHOP_SCRIPT } from '../../support/shop.js';
import { ENDLESS } from './fuzz/traces.js';

/** What one caller, or an upstream in need, does to the others: nothing that they need notice. */

const ROWS = 400_000;
const SCRIPT = `${SHOP_SCRIPT}; insert into shop.products select g, 'product ' || g from generate_series(1000, ${ROWS}) g`;
const MOST_SESSIONS = 66;
/** What each bulk reader reads, so often that a machine which does other things for a moment still has the time. */
const COPIES = 8;

tap.setTimeout(600_000);
const gateway = await start();
tap.teardown(() => gateway?.close());
const skip = gateway === null ? NO_NATIVE : false;

interface Gateway {
  readonly shop: TestService;
  readonly port: number;
  close(): Promise<void>;
}

async function start(): Promise<Gateway | null> {
  const postgres = await startNativePostgres();
  return postgres === null
    ? null
    : startOn(await startTestService({ postgres, script: SCRIPT }), () => postgres.stop());
}

async function startOn(shop: TestService, last: () => Promise<void>): Promise<Gateway> {
  const frontend = createPgFrontend(shop.service, { maxSubjectSessions: MOST_SESSIONS });
  const { port } = await frontend.listen(0, '127.0.0.1');
  return {
    shop,
    port,
    async close() {
      await frontend.stop(0);
      await shop.close();
      await last();
    },
  };
}

async function connect(t: Test, user: string, to: Gateway | null = gateway): Promise<pg.Client> {
  if (to === null) throw new Error(NO_NATIVE);
  const password = await to.shop.token(user);
  const client = await connectPg({ port: to.port, user, password });
  client.on('error', () => undefined);
  t.teardown(() => client.end().catch(() => undefined));
  return client;
}

function connected(t: Test, user: string, count: number): Promise<pg.Client[]> {
  return Promise.all(Array.from({ length: count }, () => connect(t, user)));
}

/** `ok`, or the SQLSTATE. */
async function said(run: Promise<unknown>): Promise<string> {
  return run.then(
    () => 'ok',
    (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
  );
}

let asked = 0;

/** A question of its own text, so that it has a session to itself. */
function ask(client: pg.Client): Promise<string> {
  return said(client.query(`select count(*) as n${asked++} from customer`));
}

async function system(sql: string): Promise<void> {
  await gateway?.shop.engine.system.script(generatedSql(sql));
}

/** How many sessions of ours the upstream takes: -1 for as many as it can. */
function limit(most: number): Promise<void> {
  return system(
    `do $$ begin execute format('alter database %I connection limit ${most}', current_database()); end $$`,
  );
}

const OURS = `from pg_stat_activity where usename = 'osl_reader' and datname = current_database()`;

/** Ends every session of ours, as a server does that stops. */
async function drop(): Promise<void> {
  await system(`select pg_terminate_backend(pid) ${OURS}`);
  for (let left = 1; left > 0; ) {
    const rows = await gateway?.shop.engine.system.query(
      generatedSql(`select count(*)::int as left ${OURS}`),
    );
    left = Number(rows?.[0]?.['left']);
    await pause(50);
  }
}

/** What the operator was told of the connections since `from`. */
function told(from: number): readonly string[] {
  const lines = gateway?.shop.lines.slice(from) ?? [];
  return lines.filter((l) => l.message === NO_MORE || l.message === AGAIN).map((l) => l.message);
}

const NO_MORE = 'connector opens no more sessions: it goes on with those it has, and tries again';
const AGAIN = 'connector opens sessions again';

test("one subject's long questions leave places for others, and end with their client", {
  skip,
}, async (t) => {
  const hogs = await connected(t, 'user:ada', 64);
  const long = hogs.map((client) => said(client.query(ENDLESS)));
  await pause(500);
  const others = [await connect(t, 'user:eu'), await connect(t, 'user:us')];
  for (let round = 0; round < 3; round++) {
    for (const other of others) {
      t.equal(await ask(other), 'ok', 'where it waited 5 s for nothing, and was refused');
    }
  }
  for (const hog of hogs)
    (hog as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  await Promise.all(long);
});

test('an upstream that takes no more connections: all are served by those it has', { skip }, async (t) => {
  const clients = await connected(t, 'user:ada', 40);
  const from = gateway?.shop.lines.length ?? 0;
  await drop();
  await limit(4); // with the system's own
  const all = (): Promise<string[]> => Promise.all(clients.map(ask));
  for (let round = 0; round < 3; round++) t.same([...new Set(await all())], ['ok']);
  t.same(told(from), [NO_MORE], 'the operator is told once');

  await limit(-1);
  while (told(from).length < 2) {
    t.same([...new Set(await all())], ['ok']);
    await pause(50);
  }
  t.same(told(from), [NO_MORE, AGAIN]);
});

test('an upstream that is away for a while: who asks meanwhile is answered when it is back', {
  skip,
}, async (t) => {
  const clients = await connected(t, 'user:ada', 5);
  t.same(
    await Promise.all(clients.map(ask)),
    clients.map(() => 'ok'),
  );
  await limit(0);
  await drop();
  const waiting = Promise.all(clients.map(ask));
  await pause(1_000);
  await limit(-1);
  t.same(
    await waiting,
    clients.map(() => 'ok'),
  );
});

test('an upstream that stays away: who waits hears it at its deadline', { skip }, async (t) => {
  const client = await connect(t, 'user:ada');
  await limit(0);
  await drop();
  const began = performance.now();
  t.equal(await ask(client), '53300');
  t.ok(performance.now() - began > 4_000);
  await limit(-1);
});

test('a subject has so many sessions and no more, and others theirs', { skip }, async (t) => {
  const open = await connected(t, 'user:eu', MOST_SESSIONS);
  t.equal(await said(connect(t, 'user:eu')), '53300');
  t.equal(await said(connect(t, 'user:us')), 'ok');
  const refused = (await gateway?.shop.records())?.filter((r) => r.kind === 'decision' && r.code === '53300');
  t.equal(refused?.at(-1)?.subject, 'user:eu', 'and that is on record');
  await open[0]?.end();
  while ((await said(connect(t, 'user:eu'))) !== 'ok') await pause(20); // one that ends makes room
});

test('an address has so many sessions and no more, whoever they are of', { skip }, async (t) => {
  if (gateway === null) return;
  const frontend = createPgFrontend(gateway.shop.service, { maxAddressSessions: 3 });
  t.teardown(() => frontend.stop(0));
  const { port } = await frontend.listen(0, '127.0.0.1');
  const there = { ...gateway, port };
  const open = [await connect(t, 'user:eu', there), await connect(t, 'user:us', there)];
  open.push(await connect(t, 'user:ann', there));
  t.equal(await said(connect(t, 'user:ada', there)), '53300');
  await open[0]?.end();
  while ((await said(connect(t, 'user:ada', there))) !== 'ok') await pause(20); // one that ends makes room
});

/** `psql` that copies the whole table to nowhere, some times. Resolves with its exit status. */
async function copying(user: string): Promise<number | null> {
  const env = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: `${gateway?.port}`,
    PGUSER: user,
    PGPASSWORD: await gateway?.shop.token(user),
    PGDATABASE: 'osl',
  };
  const copy = ['-c', 'copy (select id, label from product) to stdout'];
  const args = ['-X', '-q', '-o', '/dev/null', ...Array.from({ length: COPIES }, () => copy).flat()];
  const child = spawn('psql', args, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  return new Promise((resolve) => child.once('exit', resolve));
}

test('a point question beside three bulk readers waits for none of them', { skip }, async (t) => {
  const client = await connect(t, 'user:ann');
  const point = (): Promise<string> => said(client.query('select label from product where id = 2000'));
  for (let n = 0; n < 10; n++) t.equal(await point(), 'ok');
  const readers = { reading: true };
  const copies = Promise.all([copying('user:ada'), copying('user:ada'), copying('user:ada')]).finally(() => {
    readers.reading = false;
  });
  await pause(200);
  let answers = 0;
  while (readers.reading) {
    t.equal(await point(), 'ok');
    answers += 1;
  }
  t.same(await copies, [0, 0, 0]);
  // About sixty for each copy; ten where a reader has the event loop for 2 MiB at a time.
  t.ok(answers >= 15 * COPIES, `${answers} answers meanwhile`);
});

test('on the embedded engine subjects take turns, however much one has asked', async (t) => {
  const embedded = await startOn(await startTestService({ embedded: true }), async () => undefined);
  t.teardown(() => embedded.close());
  const hogs = await Promise.all(Array.from({ length: 10 }, () => connect(t, 'user:ada', embedded)));
  const other = await connect(t, 'user:ann', embedded);
  const long =
    'select count(*) from "order" a join "order" b on a.customer_id = b.customer_id join "order" c on b.customer_id = c.customer_id';
  let answered = 0;
  const all = hogs.map((client) =>
    said(client.query(long)).then((reply) => {
      answered += 1;
      return reply;
    }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  while (answered === 0) await pause(1); // so that all others wait
  t.equal(await said(other.query('select count(*) from product')), 'ok');
  t.ok(answered <= 6, `${answered} of the ten before it`);
  t.same([...new Set(await Promise.all(all))], ['ok']);
});

test('rows that were read ahead go out in turns too', { skip }, async (t) => {
  const reader = await connect(t, 'user:ada');
  const client = await connect(t, 'user:ann');
  await reader.query('begin');
  await reader.query('declare c cursor for select id, label from product');
  await reader.query('fetch 1 from c');
  await pause(1_000); // the rest has been read ahead
  let fetching = true;
  const fetched = reader.query('fetch 200000 from c').finally(() => {
    fetching = false;
  });
  let answers = 0;
  while (fetching) {
    t.equal(await said(client.query('select label from product where id = 2000')), 'ok');
    answers += 1;
  }
  t.equal((await fetched).rows.length, 200_000);
  t.ok(answers >= 8, `${answers} answers meanwhile`);
});
