import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import tap, { test } from 'tap';
import { CatalogFault, type CatalogModel, type CatalogOptions } from '../../../src/surfaces/catalog/index.js';
import { openBase, openWorld, outcome } from './support/world.js';

const base = await openBase();
tap.teardown(() => base.close());

const RUNAWAY = 'select count(*) from generate_series(1,100000000) a, generate_series(1,100) b';
/** As long, and without a temporary file that grows. */
const ENDLESS = 'select count(*) from pg_proc a, pg_proc b, pg_proc c';
const GOES_ON = `select count(*) from pg_class where relname = 'person'`;

test('a runaway statement is stopped and the session goes on', async (t) => {
  const world = await openWorld(base, { statementMs: 500 });
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  await client.query(GOES_ON);
  for (const values of [undefined, []]) {
    t.match(await outcome(client, RUNAWAY, values), /57014|temp_file_limit/);
    t.match(await outcome(client, GOES_ON), '["1"]');
    t.match(await outcome(client, ENDLESS, values), /57014.*OSL_CATALOG_TIMEOUT_MS/);
    t.match(await outcome(client, GOES_ON), '["1"]');
  }
  const { fills, boots } = world.catalogs.stats();
  t.equal(fills, 1, 'an engine that was ended begins as it was filled');
  t.ok(boots >= 3);
});

test('a catalog that cannot be built is a limit: told to all, logged once, and not tried at each question', async (t) => {
  const errors: unknown[] = [];
  const log: CatalogOptions['log'] = { error: (...entry) => void errors.push(entry) };
  const world = await openWorld(base, { log });
  t.teardown(() => world.close());
  const broken = {
    signature: 'broken',
    entities: 3,
    columns: 9,
    parts: [new TextEncoder().encode('no contents')],
  };
  const ask = (model: CatalogModel): Promise<unknown> =>
    world.catalogs.use(model, 'user:clerk', null, async () => t.fail('there is no engine')).catch(reportOf);
  const expected = {
    sqlstate: '54000',
    message: 'the catalog of the 3 entities that you may see, with 9 columns, could not be built',
    hint: "It is tried again after 30 s. The operator's log has the cause; questions about data are answered.",
  };
  for (const told of await Promise.all([ask(broken), ask(broken)])) t.match(told, expected);
  for (let i = 0; i < 3; i++) t.match(await ask(broken), expected);
  t.match(errors, [['a catalog could not be built', { entities: 3, columns: 9, error: /JSON/ }]]);
  t.equal(errors.length, 1);
  t.equal(world.catalogs.stats().boots, 1);
  t.match(await ask({ ...broken, signature: 'large', entities: 25_001 }), {
    sqlstate: '54000',
    message: /25001 entities with 9 columns: more than it can show/,
    hint: /At most 25000 entities with 300000 columns/,
  });
  t.equal(world.catalogs.stats().boots, 1, 'what is too large is not begun');
  const client = await world.connect('clerk');
  t.match(await outcome(client, GOES_ON), '["1"]', 'other catalogs are built');
});

function reportOf(error: unknown): unknown {
  if (error instanceof CatalogFault) return error.report;
  throw error;
}

test('those who wait behind a runaway statement are answered', async (t) => {
  const world = await openWorld(base, { statementMs: 500 });
  t.teardown(() => world.close());
  const [a, b] = await Promise.all([world.connect('clerk'), world.connect('clerk2')]);
  await a.query(GOES_ON);
  const runaway = outcome(a, ENDLESS);
  t.match(await outcome(b, `select current_user`), 'user:clerk2');
  t.match(await runaway, '57014');
});

test("whoever asks waits for a statement or two of another's, however many there are", async (t) => {
  const world = await openWorld(base, { statementMs: 500 });
  t.teardown(() => world.close());
  const hogs = await Promise.all(Array.from({ length: 5 }, () => world.connect('clerk')));
  const other = await world.connect('clerk2');
  await other.query(GOES_ON);
  let ended = 0;
  const runaways = hogs.map((hog) =>
    outcome(hog, ENDLESS).finally(() => {
      ended += 1;
    }),
  );
  await setTimeout(200);
  const before = ended;
  t.match(await outcome(other, `select current_user`), 'user:clerk2');
  // One before it was prepared, one before it ran.
  t.ok(ended - before <= 2, `${ended - before} of the five runaways before it`);
  for (const runaway of runaways) t.match(await runaway, /57014|53300/);
});

test('a cancel request stops a statement that still waits for its turn', async (t) => {
  const world = await openWorld(base, { statementMs: 100_000 });
  t.teardown(() => world.close());
  const [first, second] = await Promise.all([world.connect('clerk'), world.connect('clerk')]);
  await first.query(GOES_ON);
  let running = true;
  const endless = outcome(first, ENDLESS).finally(() => {
    running = false;
  });
  await setTimeout(300);
  const waiting = outcome(second, `select relname from pg_class where relname = 'city'`);
  t.match(await cancelled(world.port, second, waiting), 'canceling statement due to user request');
  t.equal(running, true);
  t.match(await cancelled(world.port, first, endless), '57014');
});

test('a cancel request stops a statement', async (t) => {
  const world = await openWorld(base, { statementMs: 30_000 });
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  await client.query(GOES_ON);
  const running = outcome(client, ENDLESS);
  t.match(await cancelled(world.port, client, running), 'canceling statement due to user request');
  t.match(await outcome(client, GOES_ON), '["1"]');
});

/** What `running` ends with, asked to end until it does: a request that comes before its statement stops nothing. */
async function cancelled(port: number, client: pg.Client, running: Promise<string>): Promise<string> {
  let over = false;
  const ended = running.finally(() => {
    over = true;
  });
  for (;;) {
    await setTimeout(300);
    if (over) return ended;
    sendCancel(port, client);
  }
}

/** What a client sends on a second connection. */
function sendCancel(port: number, client: pg.Client): void {
  // `pg` keeps its key where its types do not show it.
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
  const request = Buffer.alloc(16);
  [16, 80877102, processID, secretKey].forEach((n, i) => {
    request.writeInt32BE(n, 4 * i);
  });
  connect(port, '127.0.0.1').end(request);
}

test('no statement takes the memory of the process', async (t) => {
  const world = await openWorld(base, { maxRows: 1_000, maxBytes: 1_000_000 });
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const greedy = [
    [`select length(repeat('x', 900000000))`, /"(53200|54000|XX000)"/],
    [`select array_agg(repeat('x', 1000000) || n) from generate_series(1, 2000) n`, /"(53200|54000|XX000)"/],
    [`select n from generate_series(1, 1001) n`, /"(54000|53400|53200)"/],
    [`select repeat('x', 10000) from generate_series(1, 200) n`, /"54000"/],
    [
      `select n::text || random() from generate_series(1, 10000000) n order by 1`,
      /"(57014|53400|53200|54000)"/,
    ],
    [`select ${'('.repeat(3_000)}1${')'.repeat(3_000)}`, /./],
    [`select ${'1+'.repeat(30_000)}1`, /./],
    [`select ${'abs('.repeat(2_000)}current_setting('search_path')::int${')'.repeat(2_000)}`, /./],
  ] as const;
  for (const [text, expected] of greedy) {
    t.match(await outcome(client, text), expected, text.slice(0, 60));
    t.match(await outcome(client, GOES_ON), '["1"]');
    t.match(
      await outcome(client, `select current_user, current_setting('is_superuser')`),
      '"user:clerk","off"',
    );
  }
  t.match(await outcome(client, `select n from generate_series(1, 1000) n`), '"1000"');
});

test('engines are bounded, and the one used longest ago goes first', async (t) => {
  const world = await openWorld(base, { maxEngines: 2 });
  t.teardown(() => world.close());
  const users = ['u0', 'u1', 'u2', 'u3'];
  const clients = await Promise.all(users.map((u) => world.connect(u)));
  const columns = `select string_agg(attname, ',' order by attnum) from pg_attribute
                   where attrelid = 'city'::regclass and attnum > 0`;
  const expected = ['id', 'name', 'founded', 'id,name'].map((c) => [{ string_agg: c }]);
  const atOnce = await Promise.all(clients.map((c) => c.query(columns)));
  t.same(
    atOnce.map((r) => r.rows),
    expected,
  );
  t.equal(world.catalogs.stats().engines, 2);
  for (const [i, client] of clients.entries()) t.same((await client.query(columns)).rows, expected[i]);
  const { engines, boots, evictions } = world.catalogs.stats();
  t.equal(engines, 2);
  t.ok(evictions >= 4);
  await clients[2]?.query(columns);
  await clients[3]?.query(columns);
  t.equal(world.catalogs.stats().boots, boots, 'the two last ones are still there');
});

test('an engine that nobody asks is ended, and begun again', async (t) => {
  const world = await openWorld(base, { idleMs: 200 });
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  await client.query(GOES_ON);
  while (world.catalogs.stats().engines > 0) await setTimeout(100);
  t.match(await outcome(client, GOES_ON), '["1"]');
});

test('callers of equal rights share an engine and nothing else', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const [a, b] = await Promise.all([world.connect('clerk'), world.connect('clerk2')]);
  await a.query(`set application_name = 'it''s "a" \\ here'`);
  const who = `select current_user, session_user, current_setting('application_name') as app,
                      (select setting from pg_settings where name = 'application_name') as shown,
                      (select rolname from pg_roles where rolcanlogin and not rolsuper) as role`;
  const expected = [
    { name: 'user:clerk', app: 'it\'s "a" \\ here' },
    { name: 'user:clerk2', app: '' },
  ].map(({ name, app }) => [{ current_user: name, session_user: name, app, shown: app, role: name }]);
  for (let i = 0; i < 20; i++) {
    const answers = await Promise.all([a.query(who), b.query(who), a.query(who, []), b.query(who, [])]);
    t.same(
      answers.map((r) => r.rows),
      [...expected, ...expected],
    );
  }
  t.equal(world.catalogs.stats().boots, 1);
});

test('each statement has a decision and an outcome, and no literal is in them', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  world.takeAudit();
  await client.query(`select count(*) from pg_class where relname = 'literal'`);
  const [decision, end, ...none] = world.takeAudit();
  t.match(decision, { kind: 'decision', action: 'catalog', decision: 'allow', subject: 'user:clerk' });
  t.match(end, {
    kind: 'outcome',
    action: 'catalog',
    outcome: 'ok',
    rows: 1,
    request_id: decision?.request_id,
  });
  t.same(none, []);
  t.notMatch(JSON.stringify([decision, end]), 'literal');
  for (const refused of [
    'select * from pg_class, person',
    'select * from pg_class for update',
    'select no_such',
  ]) {
    await outcome(client, refused);
    t.match(world.takeAudit(), [{ kind: 'decision', action: 'prepare', decision: 'error' }]);
  }
  t.match(await outcome(client, 'select * from pg_class, person'), 'E0511');
});

test('who may see nothing has no catalog', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('nobody');
  t.match(await outcome(client, 'select * from pg_class'), 'E2102');
  t.equal(world.catalogs.stats().boots, 0);
});

test('a failed transaction block takes no catalog statement', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  await client.query('begin');
  t.match(await outcome(client, 'select 1/0 from pg_class'), '22012');
  t.match(await outcome(client, GOES_ON), '25P02');
  await client.query('rollback');
  t.match(await outcome(client, GOES_ON), '["1"]');
});
