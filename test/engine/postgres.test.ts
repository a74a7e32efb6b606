import t from 'tap';
import { generatedSql, sql } from '../../src/base/sql.js';
import { unboundedMemory } from '../../src/engine/answer-memory.js';
import { openEngine } from '../../src/engine/index.js';
import { openPostgres } from '../../src/engine/postgres/engine.js';
import type { PlanMode } from '../../src/engine/statement.js';
import { startNativePostgres } from '../support/native-postgres.js';
import {
  type Ask,
  ask,
  dataRow,
  errorOf,
  type Fixture,
  fixtureOver,
  NO_BINARIES,
  NO_NATIVE,
  nativeFixture,
  startOwnPostgres,
  text,
  textRows,
} from './fixture.js';

const INT4 = 23;
const TEXT = 25;
const LOST = { entry: 'databaseDown', sqlstate: '08006' };
const SLEEP = 'select 1 from pg_sleep(30)';

/** `SLEEP`, once the server runs it, and what it will fail with. */
async function asleep(
  fixture: Fixture,
  given: Partial<Ask> = {},
): Promise<{ readonly failed: Promise<unknown> }> {
  const failed = errorOf(ask(fixture, SLEEP, { oids: [INT4], ...given }));
  const runs = (): Promise<readonly unknown[]> =>
    fixture.engine.system.query(
      sql`select from pg_stat_activity
         where datname = current_database() and wait_event = 'PgSleep' and pid <> pg_backend_pid()
           and clock_timestamp() - query_start > interval '1.1 s'`, // until then it would be run again elsewhere
    );
  while ((await runs()).length === 0);
  return { failed };
}

t.test('the governed role', async (t) => {
  const native = await startOwnPostgres(); // while the role may do more, no other test could be served
  if (native === null) return t.plan(0, NO_BINARIES);
  const fixture = await fixtureOver(native);
  const { engine } = fixture;
  const open = (): Promise<unknown> =>
    openEngine({ kind: 'postgres', url: native.readerUrl, systemUrl: null, poolSize: 1 }).then((opened) =>
      opened.close().then(() => opened.governed.status.warnings),
    );
  const asSuper = openEngine({ kind: 'postgres', url: native.url, systemUrl: null, poolSize: 1 });
  t.match(await errorOf(asSuper), { message: /"postgres" is refused: .* is superuser/ });
  for (const right of ['BYPASSRLS', 'REPLICATION', 'SUPERUSER']) {
    await engine.system.script(generatedSql(`alter role osl_reader ${right}`));
    t.match(await errorOf(open()), { message: /"osl_reader" is refused/ }, right);
    await engine.system.script(generatedSql(`alter role osl_reader NO${right}`));
  }
  await engine.system.script(sql`create role strong superuser; grant strong to osl_reader`);
  t.match(await errorOf(open()), { message: /role "strong" is superuser/ }, 'a role it can become');
  await engine.system.script(sql`drop role strong; grant pg_read_server_files to osl_reader`);
  t.match(await errorOf(open()), { message: /reaches files/ });
  await engine.system.script(sql`revoke pg_read_server_files from osl_reader`);
  t.same(await open(), []);
  await engine.system.script(sql`create schema loose; grant create on schema loose to osl_reader`);
  t.same(await open(), ['role "osl_reader" can create objects in schema "loose"']);
  await fixture.close();
  return undefined;
});

t.test('an engine without system credentials refuses system work', async (t) => {
  const fixture = await nativeFixture();
  if (fixture?.native == null) return t.plan(0, NO_NATIVE);
  const url = fixture.native.readerUrl;
  const engine = await openEngine({ kind: 'postgres', url, systemUrl: null, poolSize: 1 });
  t.match(await errorOf(engine.system.query(sql`select 1`)), { message: /no system credentials/ });
  await engine.close();
  await fixture.close();
  return undefined;
});

t.test(
  'a session of the system engine is closed when the server sends nothing, not while it sends rows',
  async (t) => {
    const native = await startNativePostgres();
    if (native === null) return t.plan(0, NO_NATIVE);
    const { engine } = await openPostgres(
      { kind: 'postgres', url: native.readerUrl, systemUrl: native.url, poolSize: 1 },
      {
        onUpstreamError: () => undefined,
        onReach: () => undefined,
        onStandby: () => undefined,
        spool: null,
        memory: unboundedMemory(),
        serving: { admit: async () => undefined, systemSilenceMs: 500 },
      },
    );
    // Each row is larger than what Postgres collects before it sends.
    const rows = await engine.system.query(
      sql`select repeat(i::text, 20000) || pg_sleep(0.1)::text as text from generate_series(1, 15) i`,
    );
    t.equal(rows.length, 15, 'one and a half seconds of rows');
    t.match(await errorOf(engine.system.query(sql`select pg_sleep(30)`)), {
      message: 'the session was lost',
    });
    await engine.close();
    await native.stop();
    return undefined;
  },
);

t.test('a session that the server ends is replaced', async (t) => {
  const fixture = await nativeFixture({ sharedSessions: 2 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  const running = await asleep(fixture);
  const killed = await fixture.engine.system.query(
    sql`select pg_terminate_backend(pid) as done from pg_stat_activity where usename = 'osl_reader' and datname = current_database()`,
  );
  t.ok(killed.length > 0);
  t.match(await running.failed, LOST);
  for (let n = 0; n < 20; n++) t.equal((await ask(fixture, 'select 1', { oids: [INT4] })).rows, 1);
  await fixture.close();
  return undefined;
});

t.test('a server that crashes is found again', async (t) => {
  const native = await startOwnPostgres();
  if (native === null) return t.plan(0, NO_BINARIES);
  const fixture = await fixtureOver(native);
  const running = await asleep(fixture);
  const crashed = native.crash();
  t.match(await running.failed, LOST);
  t.equal((await ask(fixture, 'select 1', { oids: [INT4] })).rows, 1, 'who asks while it is down waits');
  await crashed;
  t.equal((await ask(fixture, 'select 1', { oids: [INT4] })).rows, 1);
  t.equal(await fixture.engine.governed.status.unhealthyReason(), null);
  await fixture.close();
  return undefined;
});

t.test('who waits too long for a session is told that the server is full', async (t) => {
  const fixture = await nativeFixture({ poolSize: 1, waitMs: 200 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  const abort = new AbortController();
  const running = await asleep(fixture, { signal: abort.signal });
  t.match(await errorOf(ask(fixture, 'select 1', { oids: [INT4] })), {
    entry: 'overloaded',
    retryAfterSeconds: 1,
  });
  abort.abort();
  t.match(await running.failed, { entry: 'cancelled' });
  t.equal((await ask(fixture, 'select 1', { oids: [INT4] })).rows, 1);
  await fixture.close();
  return undefined;
});

t.test('a cancel hits no later statement', async (t) => {
  const fixture = await nativeFixture({ poolSize: 1 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  for (let n = 0; n < 150; n++) {
    const abort = new AbortController();
    // Ends by itself at about the moment of the cancel, so the request often comes too late for it.
    const sql = 'select 1 from pg_sleep(0.002)';
    const first = errorOf(ask(fixture, sql, { oids: [INT4], signal: abort.signal }));
    setTimeout(() => abort.abort(), n % 5);
    await first;
    t.equal(await errorOf(ask(fixture, 'select 1 from pg_sleep(0.003)', { oids: [INT4] })), null);
  }
  await fixture.close();
  return undefined;
});

t.test('a row cap leaves parallel plans parallel', async (t) => {
  const fixture = await nativeFixture({ poolSize: 1 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  await fixture.engine.system.script(sql`
    create schema p; create table p.t as select g from generate_series(1, 300000) g;
    alter table p.t set (parallel_workers = 2);
    create function p.pid() returns int4 language plpgsql parallel safe as 'begin return pg_backend_pid(); end';
    do $$ begin execute format('alter role osl_reader in database %1$I set parallel_setup_cost = 0;
      alter role osl_reader in database %1$I set parallel_tuple_cost = 0;
      alter role osl_reader in database %1$I set parallel_leader_participation = off', current_database()); end $$`);
  await fixture.engine.system.grantRead('p');
  // The session itself may only hand out and collect: else it could be through before a worker has started.
  const question = 'select t.pid from (select p.pid() from p.t group by 1) t where t.pid <> pg_backend_pid()';
  const { rows } = await ask(fixture, question, { oids: [INT4], maxRows: 1000 });
  t.ok(rows > 0, `${rows} workers ran it`);
  await fixture.close();
  return undefined;
});

t.test('shared sessions', async (t) => {
  const fixture = await nativeFixture({ poolSize: 2, sharedSessions: 1 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  const given = { oids: [INT4], parameterOids: [INT4] };
  const question = 'select g from generate_series(1, $1::int4) g';
  const upTo = (n: number, more: object = {}): ReturnType<typeof ask> =>
    ask(fixture, question, { ...given, values: [text(`${n}`)], ...more });
  const sessions = async (): Promise<number> => {
    const [row] = await fixture.engine.system.query(
      sql`select count(*)::int4 as n from pg_stat_activity
         where application_name = 'osl-gateway' and datname = current_database()`,
    );
    return Number(row?.['n']);
  };
  // The shared session connects once three answers were short, which a busy machine may make long.
  while ((await sessions()) < 2) await upTo(1);
  for (let n = 0; n < 20; n++) await upTo(1);
  t.equal(await sessions(), 2, 'one session of the pool, one shared');

  const many = await Promise.all(Array.from({ length: 200 }, (_, n) => upTo(n % 7)));
  t.same(
    many.map((answer) => answer.rows),
    many.map((_, n) => n % 7),
  );
  t.equal((await upTo(5000)).rows, 5000, 'what outgrows the session is run again, alone, and whole');
  t.equal((await upTo(3, { maxRows: 2 })).truncated, true);

  const slow = 'select $1::int4 from pg_sleep($1::int4 * 0.001)';
  const sleep = (ms: number, more: object = {}): ReturnType<typeof ask> =>
    ask(fixture, slow, { ...given, values: [text(`${ms}`)], ...more });
  for (let n = 0; n < 6; n++) await sleep(0);
  const [long, ...short] = await Promise.all([sleep(400), ...Array.from({ length: 20 }, () => upTo(1))]);
  t.same(long.bytes, dataRow(['400']), 'what outlasts the session is run again alone');
  t.ok(short.every((answer) => answer.rows === 1));

  const abort = new AbortController();
  const others = 'select $1::int4 + 1 from pg_sleep($1::int4 * 0.001)';
  const other = (ms: number, more: object = {}): ReturnType<typeof ask> =>
    ask(fixture, others, { ...given, values: [text(`${ms}`)], ...more });
  for (let n = 0; n < 6; n++) await other(0);
  const aborted = errorOf(other(60, { signal: abort.signal }));
  const neighbours = Array.from({ length: 20 }, (_, n) => other(n % 3));
  setTimeout(() => abort.abort(), 20);
  t.match(await aborted, { entry: 'cancelled' });
  for (const [n, answer] of (await Promise.all(neighbours)).entries()) {
    t.same(
      answer.bytes,
      dataRow([`${(n % 3) + 1}`]),
      'a neighbour of an aborted statement gets its own answer',
    );
  }
  t.match(
    await errorOf(upTo(1, { values: [text('x')] })),
    { sqlstate: '22P02' },
    'an error is the caller’s own',
  );
  t.equal((await upTo(1)).rows, 1);
  await fixture.close();
  return undefined;
});

t.test(
  'short statements are shared by how they are planned, and a lent session plans for values',
  async (t) => {
    const fixture = await nativeFixture({ poolSize: 1, sharedSessions: 1 });
    if (fixture === null) return t.plan(0, NO_NATIVE);
    const MODE = `select current_setting('plan_cache_mode'), pg_backend_pid()::text`;
    const asked = async (
      planMode: PlanMode,
      more: Partial<Ask> = {},
    ): Promise<readonly (string | null)[]> => {
      const { bytes } = await ask(fixture, `${MODE} as ${planMode}`, {
        oids: [TEXT, TEXT],
        planMode,
        ...more,
      });
      return textRows(bytes)[0] ?? [];
    };
    const [alone, lent] = await asked('auto');
    t.equal(alone, 'force_custom_plan');
    for (const mode of ['auto', 'force_custom_plan'] as const) {
      const shared = async (): Promise<boolean> => (await asked(mode))[1] !== lent;
      while (!(await shared()));
      const found = await Promise.all(Array.from({ length: 20 }, () => asked(mode)));
      t.strictSame([...new Set(found.map(([as]) => as))], [mode]);
      const own = [['plan_cache_mode', 'force_generic_plan']] as const;
      t.equal(
        (await asked(mode, { settings: own }))[0],
        'force_generic_plan',
        "a client's own, for one statement",
      );
      t.equal((await asked(mode))[0], mode);
    }
    await fixture.close();
    return undefined;
  },
);

t.test('a snapshot has the place of one that has ended at once', async (t) => {
  const fixture = await nativeFixture({ poolSize: 2 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  for (let i = 0; i < 20; i++) {
    const snapshot = fixture.engine.governed.snapshot('REPEATABLE READ', 'a', null);
    t.match(await ask(fixture, 'select 1', { oids: [23], subject: 'a', snapshot }), { rows: 1 });
    snapshot?.end();
  }
  await fixture.close();
  return undefined;
});

t.test('however fast its rows come, an answer has the event loop for a slice at a time', async (t) => {
  const fixture = await nativeFixture({ poolSize: 3 });
  if (fixture === null) return t.plan(0, NO_NATIVE);
  let passed = 0;
  // As slow as what encodes rows: the upstream is faster, so that its socket always has more.
  const write = (bytes: Uint8Array): void => {
    passed += bytes.length;
    const end = performance.now() + bytes.length / 16_384;
    while (performance.now() < end);
  };
  const question = `select repeat('x', 100) from generate_series(1, 60000)`;
  const streams = { running: true };
  const all = Promise.all([1, 2, 3].map(() => ask(fixture, question, { oids: [25], write }))).finally(() => {
    streams.running = false;
  });
  let most = 0;
  let turns = 0;
  while (streams.running) {
    const before = passed;
    await new Promise((done) => setImmediate(done));
    most = Math.max(most, passed - before);
    turns += 1;
  }
  t.same(
    (await all).map(({ rows }) => rows),
    [60_000, 60_000, 60_000],
  );
  t.ok(most <= 3 * 65_536, `${most} bytes in one of ${turns} turns`);
  await fixture.close();
  return undefined;
});
