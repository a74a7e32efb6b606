import { QueryError } from 'osl-compiler';
import t, { type Test } from 'tap';
import { sql } from '../../src/base/sql.js';
import { UpstreamFailure } from '../../src/engine/index.js';
import { emptyDatabaseOfItsOwn } from '../support/embedded-data.js';
import {
  ask,
  dataRow,
  errorOf,
  type Fixture,
  NO_NATIVE,
  nativeFixture,
  pgliteFixture,
  text,
  textRows,
} from './fixture.js';

const INT4 = 23;
const TEXT = 25;
const BIG = `select g, repeat('x', 1000) from generate_series(1, 200000) g`;
/** Runs for minutes unless it is stopped. */
const ENDLESS = 'select count(*) from generate_series(1, 2000000000)';
const ONE = 'select 1';

type Case = (t: Test, fixture: Fixture) => Promise<void>;

const CASES: Readonly<Record<string, Case>> = {
  'text rows arrive byte for byte': async (t, f) => {
    const sql = `select 7::int4, 'né'::text, null::text, ''::text, 1.50::numeric, true, '2024-02-29'::date`;
    const { bytes, rows, truncated } = await ask(f, sql, { oids: [INT4, TEXT, TEXT, TEXT, 1700, 16, 1082] });
    t.same(bytes, dataRow(['7', 'né', null, '', '1.50', 't', '2024-02-29']));
    t.same({ rows, truncated }, { rows: 1, truncated: false });
  },
  'binary rows arrive byte for byte': async (t, f) => {
    const { bytes } = await ask(f, `select 7::int4, 'né'::text, null::int8, true`, {
      oids: [INT4, TEXT, 20, 16],
      resultFormats: [1],
    });
    t.same(bytes, dataRow([Buffer.from([0, 0, 0, 7]), 'né', null, Buffer.from([1])]));
  },
  'text and binary parameters mean the same': async (t, f) => {
    const given = { oids: [INT4, TEXT], parameterOids: [INT4, TEXT] };
    const binary = { format: 1, bytes: Buffer.from([0, 0, 1, 0]) } as const;
    const sql = 'select $1::int4, $2::text';
    t.same((await ask(f, sql, { ...given, values: [text('256'), text('a')] })).bytes, dataRow(['256', 'a']));
    t.same(
      (await ask(f, sql, { ...given, values: [binary, { format: 0, bytes: null }] })).bytes,
      dataRow(['256', null]),
    );
  },
  'a value that spans many chunks is whole': async (t, f) => {
    const { bytes } = await ask(f, `select repeat('abcdefghij', 300000)`, { oids: [TEXT] });
    t.ok(bytes.equals(dataRow(['abcdefghij'.repeat(300_000)])));
  },
  'a sink that waits holds the upstream': async (t, f) => {
    let writes = 0;
    let rows = 0;
    let last = '';
    let duringHold = 0;
    let grown = 0;
    await ask(f, BIG, {
      oids: [INT4, TEXT],
      write: async (bytes, count) => {
        writes += 1;
        rows += count;
        last = textRows(Buffer.from(bytes)).at(-1)?.[0] ?? '';
        if (writes === 3) {
          const before = process.memoryUsage().arrayBuffers;
          await new Promise((done) => setTimeout(done, 700));
          duringHold = writes - 3;
          grown = process.memoryUsage().arrayBuffers - before;
        }
      },
    });
    t.equal(duringHold, 0, 'nothing is written while the sink waits');
    t.ok(grown < 16_777_216, `a 200 MB result grew the process by ${grown} bytes while held`);
    t.equal(rows, 200_000);
    t.equal(last, '200000');
  },
  'a sink that throws ends the execution, and the next one works': async (t, f) => {
    const boom = new Error('the reader went away');
    t.equal(
      await errorOf(
        ask(f, BIG, {
          oids: [INT4, TEXT],
          write: () => {
            throw boom;
          },
        }),
      ),
      boom,
    );
    t.equal(
      await errorOf(
        ask(f, BIG, {
          oids: [INT4, TEXT],
          write: async () => {
            throw boom;
          },
        }),
      ),
      boom,
    );
    t.equal((await ask(f, ONE, { oids: [INT4] })).rows, 1);
  },
  'the row cap delivers exactly that many rows': async (t, f) => {
    const sql = 'select g from generate_series(1, 100000) g';
    const capped = await ask(f, sql, { oids: [INT4], maxRows: 1500 });
    t.same({ rows: capped.rows, truncated: capped.truncated }, { rows: 1500, truncated: true });
    const got = textRows(capped.bytes);
    t.same([got.length, got.at(-1)], [1500, ['1500']]);
    const exact = await ask(f, sql, { oids: [INT4], maxRows: 100_000 });
    t.same([exact.rows, exact.truncated], [100_000, false], 'a result of exactly the cap is whole');
    t.equal((await ask(f, ONE, { oids: [INT4] })).rows, 1);
  },
  'the byte cap delivers whole rows within it': async (t, f) => {
    const row = dataRow(['x'.repeat(1000)]).length;
    const sql = `select repeat('x', 1000) from generate_series(1, 20000)`;
    const capped = await ask(f, sql, { oids: [TEXT], maxBytes: row * 10 + 5 });
    t.same([capped.rows, capped.truncated, capped.bytes.length], [10, true, row * 10]);
    const none = await ask(f, sql, { oids: [TEXT], maxBytes: 5 });
    t.same([none.rows, none.truncated], [0, true]);
  },
  'a deadline ends the statement, and the next one works': async (t, f) => {
    const error = await errorOf(ask(f, ENDLESS, { oids: [20], timeoutMs: 300 }));
    t.match(error, { entry: 'timedOut', message: 'the statement ran longer than 0.3 s and was stopped' });
    t.equal((await ask(f, ONE, { oids: [INT4] })).rows, 1);
  },
  'an abort ends the statement, and who waits behind it is served': async (t, f) => {
    const abort = new AbortController();
    const running = errorOf(ask(f, ENDLESS, { oids: [20], signal: abort.signal }));
    const waiting = Array.from({ length: 8 }, () => ask(f, ONE, { oids: [INT4] }));
    setTimeout(() => abort.abort(), 200);
    t.match(await running, { entry: 'cancelled' });
    for (const answer of await Promise.all(waiting)) t.equal(answer.rows, 1);
  },
  'an abort before the start runs nothing': async (t, f) => {
    t.match(await errorOf(ask(f, ONE, { oids: [INT4], signal: AbortSignal.abort() })), {
      entry: 'cancelled',
    });
  },
  'an abort while the sink waits is heard': async (t, f) => {
    const abort = new AbortController();
    const write = (): Promise<void> => {
      setTimeout(() => abort.abort(), 50);
      return new Promise(() => undefined);
    };
    t.match(await errorOf(ask(f, BIG, { oids: [INT4, TEXT], write, signal: abort.signal })), {
      entry: 'cancelled',
    });
    t.equal((await ask(f, ONE, { oids: [INT4] })).rows, 1);
  },
  'an upstream error tells its SQLSTATE and none of its words': async (t, f) => {
    f.heard.length = 0;
    const error = await errorOf(ask(f, `select ('secret_' || 'word')::text::int4`, { oids: [INT4] }));
    t.ok(error instanceof QueryError);
    t.match(error, { entry: 'execution', sqlstate: '22P02' });
    t.notMatch(JSON.stringify({ ...Object(error), message: String(error) }), /secret_word/);
    t.match(f.heard, [{ sqlstate: '22P02', message: /secret_word/ }], 'the log hears it whole');
    t.match(await errorOf(ask(f, 'select 1 / 0', { oids: [INT4] })), {
      sqlstate: '22012',
      message: 'the database could not run the query',
    });
  },
  'governed sessions are read-only and unprivileged': async (t, f) => {
    const create = errorOf(ask(f, 'create table pg_temp.x(a int)', { oids: [] }));
    t.match(await create, { entry: 'execution' });
    t.match(await errorOf(ask(f, 'delete from kept.t', { oids: [] })), { sqlstate: /25006|42501/ });
    t.match(await errorOf(ask(f, 'select a from hidden.t', { oids: [INT4] })), { sqlstate: '42501' });
    const sql = `select current_setting('transaction_read_only'), current_setting('is_superuser'), current_user::text`;
    t.same(textRows((await ask(f, sql, { oids: [TEXT, TEXT, TEXT] })).bytes), [['on', 'off', 'osl_reader']]);
  },
  'sessions have fixed settings': async (t, f) => {
    const sql = `select current_setting(n) from unnest(array['search_path', 'TimeZone', 'DateStyle', 'IntervalStyle',
      'extra_float_digits', 'bytea_output', 'standard_conforming_strings', 'client_encoding']) n`;
    t.same(
      textRows((await ask(f, sql, { oids: [TEXT] })).bytes).map(([v]) => v),
      ['pg_catalog, pg_temp', 'UTC', 'ISO, MDY', 'postgres', '1', 'hex', 'on', 'UTF8'],
    );
  },
  'what a statement does to its session reaches no other': async (t, f) => {
    const dirty = `select set_config('TimeZone', 'Asia/Tokyo', false)`;
    await errorOf(ask(f, dirty, { oids: [TEXT] })); // refused where the engine can, undone where not
    for (let n = 0; n < 4; n++) {
      const { bytes } = await ask(f, `select current_setting('TimeZone')`, { oids: [TEXT] });
      t.same(bytes, dataRow(['UTC']));
    }
  },
  'a column type that the plan does not promise is a change of the database, of which no row leaves': async (
    t,
    f,
  ) => {
    let written = 0;
    const asked = ask(f, 'select 1::int8', {
      oids: [INT4],
      write: () => {
        written += 1;
      },
    });
    t.match(await errorOf(asked), { entry: 'sourceChanged' });
    t.equal(written, 0, 'no row leaves');
    t.match(
      await errorOf(ask(f, 'select 1::int8', { oids: [INT4] })),
      { entry: 'sourceChanged' },
      'also again',
    );
    t.match(await errorOf(ask(f, 'select 1, 2', { oids: [INT4] })), { entry: 'sourceChanged' });
    t.equal((await ask(f, `select 'a'::varchar`, { oids: [TEXT] })).rows, 1, 'varchar is text on the wire');
  },
  'a table that changed under a prepared statement is prepared again': async (t, f) => {
    await f.engine.system.script(
      sql`drop table if exists kept.moves; create table kept.moves(a int4, b text)`,
    );
    await f.engine.system.script(sql`insert into kept.moves values (1, 'x')`);
    await f.engine.system.grantRead('kept');
    const star = (oids: number[]): Promise<{ rows: number }> => ask(f, 'select * from kept.moves', { oids });
    for (let n = 0; n < 4; n++) t.equal((await star([INT4, TEXT])).rows, 1);
    await f.engine.system.script(sql`alter table kept.moves add c int8`);
    t.match(
      await errorOf(star([INT4, TEXT])),
      { entry: 'sourceChanged' },
      'the upstream is asked for its types anew',
    );
    t.equal((await star([INT4, TEXT, 20])).rows, 1);
  },
  'more statements than a session remembers all work': async (t, f) => {
    for (let n = 0; n < 620; n++) await ask(f, `select ${n}::int4`, { oids: [INT4] });
    t.same((await ask(f, 'select 0::int4', { oids: [INT4] })).bytes, dataRow(['0']));
  },
  'concurrent callers get their own answers': async (t, f) => {
    const one = async (n: number): Promise<void> => {
      const given = { oids: [INT4], parameterOids: [INT4], values: [text(`${n}`)] };
      t.same((await ask(f, 'select $1::int4', given)).bytes, dataRow([`${n}`]));
    };
    await Promise.all(Array.from({ length: 300 }, (_, n) => one(n)));
  },
  'the system door decodes, binds and fails plainly': async (t, f) => {
    const [row] = await f.engine.system.query(
      sql`select $1::int4 as i, $2::text[] as a, $3::jsonb as j, null as n, $4::bytea as b, 5::int8 as l`,
      [3, ['x', 'y"z', null], { k: [1] }, Buffer.from([1, 255])],
    );
    t.same(
      { ...row },
      { i: 3, a: ['x', 'y"z', null], j: { k: [1] }, n: null, b: Buffer.from([1, 255]), l: '5' },
    );
    t.ok((await errorOf(f.engine.system.query(sql`select nope`))) instanceof UpstreamFailure);
  },
  'copyIn keeps every character, and loads all rows or none': async (t, f) => {
    await f.engine.system.script(sql`create table kept.loaded(a int4 primary key, b text)`);
    const target = { schema: 'kept', table: 'loaded', columns: ['a', 'b'] };
    const odd = ['tab\there', 'line\nbreak', 'back\\slash', '\\N', '', null, 'né😀', '\r', '\\.'];
    t.equal(
      await f.engine.system.copyIn(
        target,
        odd.map((b, a) => [`${a}`, b]),
      ),
      odd.length,
    );
    const back = await f.engine.system.query(sql`select b from kept.loaded order by a`);
    t.same(
      back.map((row) => row['b']),
      odd,
    );
    const many = function* (): Generator<[string, string]> {
      for (let n = 0; n < 50_000; n++) yield [`${n === 49_999 ? 100 : n + 100}`, 'y'.repeat(100)]; // the last is a duplicate
    };
    t.match(await errorOf(f.engine.system.copyIn(target, many())), { sqlstate: '23505' });
    t.same(
      (await f.engine.system.query(sql`select count(*)::int4 as n from kept.loaded`))[0]?.['n'],
      odd.length,
    );
  },
  'a system transaction is whole or nothing': async (t, f) => {
    await f.engine.system.script(sql`create table kept.tx(a int4)`);
    const failing = f.engine.system.transaction(async (tx) => {
      await tx.query(sql`insert into kept.tx values ($1)`, [1]);
      throw new Error('changed my mind');
    });
    t.match(await errorOf(failing), { message: 'changed my mind' });
    await f.engine.system.transaction((tx) => tx.query(sql`insert into kept.tx values (2)`));
    t.same(
      (await f.engine.system.query(sql`select a from kept.tx`)).map((row) => row['a']),
      [2],
    );
  },
  'governed work after system work is unprivileged again': async (t, f) => {
    for (let n = 0; n < 3; n++) {
      t.same((await f.engine.system.query(sql`select current_user::text as u`))[0]?.['u'], 'postgres');
      t.same((await ask(f, 'select current_user::text', { oids: [TEXT] })).bytes, dataRow(['osl_reader']));
    }
  },
};

const ZONE = `select current_setting('TimeZone'), timestamptz '2026-01-01 00:00+00'::text`;
const TOKYO = [['TimeZone', 'Asia/Tokyo'] as const];
const UTC_ROW = ['UTC', '2026-01-01 00:00:00+00'];
const TOKYO_ROW = ['Asia/Tokyo', '2026-01-01 09:00:00+09'];

async function rowOf(
  f: Fixture,
  settings: readonly (readonly ['TimeZone' | 'DateStyle' | 'IntervalStyle', string])[] = [],
) {
  const [row] = textRows((await ask(f, ZONE, { oids: [TEXT, TEXT], settings })).bytes);
  return row;
}

async function untouched(t: Test, f: Fixture, after: string): Promise<void> {
  for (let n = 0; n < 4; n++) t.same(await rowOf(f), UTC_ROW, after);
}

/** Settings of a statement are in force for that statement, whatever becomes of it. */
const SETTINGS: Readonly<Record<string, Case>> = {
  'of a statement that ends well': async (t, f) => {
    t.same(await rowOf(f, TOKYO), TOKYO_ROW);
    await untouched(t, f, 'a success');
    t.same(await rowOf(f, TOKYO), TOKYO_ROW, 'prepared by now');
    const several = [['IntervalStyle', 'iso_8601'], ['DateStyle', 'German, DMY'], ...TOKYO] as const;
    t.same(await rowOf(f, several), ['Asia/Tokyo', '01.01.2026 09:00:00 JST']);
    await untouched(t, f, 'several');
  },
  'of one that fails': async (t, f) => {
    const failing = ask(f, 'select 1/(g - 500) from generate_series(1, 1000) g', {
      oids: [23],
      settings: TOKYO,
    });
    t.match(await errorOf(failing), { entry: 'execution', sqlstate: '22012' });
    t.match(await errorOf(ask(f, 'select no_such', { oids: [23], settings: TOKYO })), { entry: 'execution' });
    await untouched(t, f, 'a failure');
  },
  'of one that is stopped': async (t, f) => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    const endless = 'select count(*) from generate_series(1, 2000000000)';
    const stopped = ask(f, endless, { oids: [20], settings: TOKYO, signal: abort.signal });
    t.match(await errorOf(stopped), { entry: 'cancelled' });
    await untouched(t, f, 'a cancel');
  },
  'of one whose reader fails': async (t, f) => {
    const write = (): void => {
      throw new Error('the reader has gone');
    };
    const rows = `select repeat('x', 1000) from generate_series(1, 5000)`;
    t.match(await errorOf(ask(f, rows, { oids: [TEXT], settings: TOKYO, write })), {
      message: 'the reader has gone',
    });
    await untouched(t, f, 'a reader');
  },
  'a setting that is none skips its statement': async (t, f) => {
    for (const value of ['No/Such', "UTC'; reset role; --", `UTC' ; set local search_path to 'kept`, '\\']) {
      const refused = ask(f, ZONE, { oids: [TEXT, TEXT], settings: [['TimeZone', value]] });
      t.match(await errorOf(refused), { entry: 'unresolvable' }, value);
    }
    await untouched(t, f, 'a refusal');
    t.same(await rowOf(f, TOKYO), TOKYO_ROW);
  },
  'zones are what the upstream knows': async (t, f) => {
    const { engine } = f;
    t.equal(await engine.governed.status.timeZone('europe/berlin'), 'Europe/Berlin');
    t.equal(await engine.governed.status.timeZone('-7'), '<-07>+07');
    t.equal(await engine.governed.status.timeZone('No/Such'), null);
    t.equal(await engine.governed.status.timeZone('No/Such'), null, 'also from memory');
    t.equal(await engine.governed.status.timeZone('x'.repeat(10_000)), null);
    t.equal(await engine.governed.status.timeZone('UTC\0'), null);
    await untouched(t, f, 'asking');
  },
};

async function runCases(t: Test, fixture: Fixture, cases: Readonly<Record<string, Case>>): Promise<void> {
  await fixture.engine.system.script(
    sql`create schema kept; create table kept.t(a int4); insert into kept.t values (1);
     create schema hidden; create table hidden.t(a int4)`,
  );
  await fixture.engine.system.grantRead('kept');
  for (const [name, run] of Object.entries(cases)) await t.test(name, (t) => run(t, fixture));
  t.equal(await fixture.engine.governed.status.unhealthyReason(), null);
  await fixture.close();
  t.not(await fixture.engine.governed.status.unhealthyReason(), null, 'a closed engine is not healthy');
}

t.test('pglite', async (t) =>
  runCases(t, await pgliteFixture(await emptyDatabaseOfItsOwn()), { ...SETTINGS, ...CASES }),
);

t.test('native postgres', async (t) => {
  const fixture = await nativeFixture();
  if (fixture === null) t.plan(0, NO_NATIVE);
  else await runCases(t, fixture, { ...SETTINGS, ...CASES });
});

t.test('native postgres with shared sessions', async (t) => {
  const fixture = await nativeFixture({ sharedSessions: 2 });
  if (fixture === null) t.plan(0, NO_NATIVE);
  else await runCases(t, fixture, CASES);
});

t.test('statements that share one upstream session', async (t) => {
  const f = await nativeFixture({ sharedSessions: 1, poolSize: 4 });
  if (f === null) return t.comment(NO_NATIVE);
  t.teardown(() => f.close());
  const sql = `select pg_backend_pid()::text, current_setting('TimeZone'), 1 / $1::int4`;
  const zones = ['', 'Asia/Tokyo', 'Europe/Berlin', 'Asia/Kolkata', 'No/Such'];
  const onPid = new Map<string, Set<string>>();
  for (let round = 0; round < 30; round++) {
    const asked = Array.from({ length: 20 }, async (_, i) => {
      const zone = zones[i % zones.length] ?? '';
      const divisor = (i + round) % 7 === 0 && round > 10 ? '0' : '1';
      const values = [{ format: 0 as const, bytes: Buffer.from(divisor) }];
      const settings = zone === '' ? [] : [['TimeZone', zone] as const];
      const run = ask(f, sql, { oids: [TEXT, TEXT, 23], parameterOids: [23], values, settings });
      if (zone === 'No/Such') return t.match(await errorOf(run), { entry: 'unresolvable' });
      if (divisor === '0') return t.match(await errorOf(run), { sqlstate: '22012' });
      const [[pid, seen] = []] = textRows((await run).bytes);
      onPid.set(pid ?? '', (onPid.get(pid ?? '') ?? new Set()).add(seen ?? ''));
      return t.equal(seen, zone === '' ? 'UTC' : zone);
    });
    await Promise.all(asked);
  }
  t.ok(
    [...onPid.values()].some((seen) => seen.size === 4),
    'one session served all the zones',
  );
  t.same((await ask(f, `select 'x'`, { oids: [TEXT] })).bytes, dataRow(['x']));
});
