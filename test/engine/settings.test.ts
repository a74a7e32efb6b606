import t, { type Test } from 'tap';
import { emptyDatabaseOfItsOwn } from '../support/embedded-data.js';
import {
  ask,
  dataRow,
  errorOf,
  type Fixture,
  NO_NATIVE,
  nativeFixture,
  pgliteFixture,
  textRows,
} from './fixture.js';

/** Settings of a statement are in force for that statement, whatever becomes of it. */

const TEXT = 25;
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

type Case = (t: Test, fixture: Fixture) => Promise<void>;

const CASES: Readonly<Record<string, Case>> = {
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

async function runCases(t: Test, fixture: Fixture | null): Promise<void> {
  if (fixture === null) return t.comment(NO_NATIVE);
  t.teardown(() => fixture.close());
  for (const [name, run] of Object.entries(CASES)) await t.test(name, (t) => run(t, fixture));
}

t.test('pglite', async (t) => runCases(t, await pgliteFixture(await emptyDatabaseOfItsOwn())));
t.test('postgres', async (t) => runCases(t, await nativeFixture()));

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
