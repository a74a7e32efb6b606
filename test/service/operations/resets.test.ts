import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { SKIP } from '../../control/support.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { NO_REDIS, startRedis } from '../../support/redis.js';
import { asked, logged } from './support.js';
import {
  ACCOUNTS,
  type Part,
  STOCK,
  type Surrounded,
  type Surroundings,
  surroundings,
} from './surroundings.js';

/**
 * Every connection that a gateway makes is reset, in every state that it has: the process lives, callers get the right
 * answer or the code in the catalogue, and the gateway connects again by itself.
 */

t.setTimeout(300_000);

type State = readonly [direction: 'up' | 'down', after: number];

/** Parts that are reset together, and the results that callers may get meanwhile. */
type Group = readonly [parts: readonly Part[], results: RegExp];

const DATABASES: readonly Group[] = [
  [['control', 'limits', 'system', 'witness'], /^200$/],
  [['data'], /^(200|502 E0523)$/],
  [['audit'], /^(200|503 E5030)$/],
];
const SERVERS: Group = [['collector', 'issuer'], /^200$/];

/** Bytes after which a Postgres connection is reset, counted on one connection from when it opens. */
const LOGIN_STATES: Readonly<Record<string, State>> = {
  'before the startup packet': ['up', 0],
  'within the startup packet': ['up', 9],
  'after the startup packet': ['down', 0],
  'while its parameters arrive': ['down', 40],
  'in its first statement': ['up', 250],
  'in the answer to its first statement': ['down', 480],
};

/** HTTP: one request is one exchange. */
const HTTP_STATES: Readonly<Record<string, State>> = {
  'before the request': ['up', 0],
  'within the request': ['up', 60],
  'before the answer': ['down', 0],
  'within the answer': ['down', 30],
};

/** Runs the three kinds of queries until `until` holds; returns all that was heard. */
async function asking(gateway: Surrounded, until: () => boolean): Promise<readonly string[]> {
  const heard = new Set<string>();
  const issued = gateway.issued();
  const ask = async (osql: string, token?: string): Promise<void> => {
    do {
      heard.add(await gateway.asks(osql, token).catch((error: unknown) => `no answer: ${String(error)}`));
      await sleep(10);
    } while (!until());
  };
  await Promise.all([ask(ACCOUNTS), ask(STOCK), ask(ACCOUNTS, issued)]);
  return [...heard];
}

async function healed(gateway: Surrounded): Promise<void> {
  const all = async (): Promise<boolean> => {
    const found = [await gateway.asks(ACCOUNTS), await gateway.asks(STOCK)];
    return found.every((one) => one === '200') && (await gateway.get('/ready')).status === 200;
  };
  while (!(await all())) await sleep(20);
}

/** Resets what is open, and the next connection of each proxy in the given state. */
async function resetIn(
  t: Test,
  gateway: Surrounded,
  proxies: readonly FaultProxy[],
  results: RegExp,
  name: string,
  [direction, after]: State,
): Promise<void> {
  for (const proxy of proxies) proxy.arm({ direction, after, deed: 'reset' });
  for (const proxy of proxies) proxy.strike('reset');
  const began = performance.now();
  const reached = (): boolean => proxies.every(({ fired }) => fired);
  const heard = await asking(gateway, () => reached() || performance.now() - began > 15_000);
  t.ok(reached(), `${name}: the connections came into this state`);
  for (const proxy of proxies) proxy.arm(null);
  t.same(
    heard.filter((one) => !results.test(one)),
    [],
    name,
  );
  await healed(gateway);
}

/** No error was unhandled, and the gateway stops as it should. */
async function endsInOrder(t: Test, { server }: Surrounded): Promise<void> {
  t.ok(server.alive, 'it lives');
  t.notMatch(server.stderr, /an error that nothing handled|internal error/);
  t.equal((await server.signal('SIGTERM')).code, 0);
}

const said = ({ server }: Surrounded): ReadonlySet<unknown> => new Set(logged(server).map(({ msg }) => msg));

t.test('connections that are reset', { skip: SKIP }, async (t) => {
  const world = await surroundings(t);
  await world.house.admin('insert into shop.big select generate_series(1, 60000)');

  await t.test('of a running gateway, in each state', async (t) => {
    const gateway = await world.serve(t);
    await healed(gateway);
    const reset = async ([parts, results]: Group, states: typeof LOGIN_STATES): Promise<void> => {
      const proxies = parts.map((part) => world.proxies[part]);
      for (const [state, at] of Object.entries(states))
        await resetIn(t, gateway, proxies, results, `${parts.join(', ')}, ${state}`, at);
    };
    for (const group of DATABASES) await reset(group, LOGIN_STATES);
    await reset(SERVERS, HTTP_STATES);
    await statements(t, world, gateway);
    const messages = said(gateway);
    for (const text of [
      'the control database answers again',
      'the store of limits answers again',
      'the audit log goes on, with a record of the gap',
      'the collector of traces and metrics answers again',
    ])
      t.ok(messages.has(text), text);
    await endsInOrder(t, gateway);
  });

  await t.test('of a gateway that starts, and of its workers', async (t) => {
    const { control, limits } = world.proxies;
    for (const [proxy, after] of [
      [control, 40],
      [limits, 480],
    ] as const) {
      proxy.arm({ direction: 'down', after, deed: 'reset' });
      const gateway = await world.serve(t, { OSL_WORKERS: '2' });
      t.ok(proxy.fired);
      proxy.arm(null);
      await healed(gateway);
      for (let i = 0; i < 5; i++) {
        for (const { strike } of [control, limits]) strike('reset');
        await sleep(40);
      }
      await healed(gateway);
      await endsInOrder(t, gateway);
    }
  });

  const redis = await startRedis();
  await t.test('to Redis', { skip: redis === null && NO_REDIS }, async (t) => {
    if (redis === null) return;
    t.teardown(() => redis.stop());
    const proxy = await startFaultProxy(Number(new URL(redis.url).port));
    t.teardown(() => proxy.close());
    const gateway = await world.serve(t, { OSL_LIMITS_URL: proxy.by(redis.url) });
    await healed(gateway);
    for (const [state, at] of Object.entries(HTTP_STATES))
      await resetIn(t, gateway, [proxy], /^200$/, state, at);
    await endsInOrder(t, gateway);
  });
});

/** States of the data database's connections that only a statement brings about. */
async function statements(t: Test, world: Surroundings, gateway: Surrounded): Promise<void> {
  const { data } = world.proxies;
  const client = await gateway.wireClient();
  await client.connect();
  const BIG = 'select id from osl.entities.big';

  await t.test('in the middle of an answer', async (t) => {
    data.arm({ direction: 'down', after: 100_000, deed: 'reset' });
    await t.rejects(client.query(BIG), { code: '08006' }, 'on the wire');
    t.ok(data.fired);
    t.equal((await client.query(BIG)).rows.length, 60_000, 'the session goes on');
    data.arm({ direction: 'down', after: 100_000, deed: 'reset' });
    const authorization = `Bearer ${await gateway.token()}`;
    const cut = asked(gateway.server, '/osl/query', { osql: BIG }, { authorization, connection: 'close' });
    const rest = await cut.then(
      ({ status, body }) => (/"code":"E0523"/.test(body) ? 'E0523' : `${status}`),
      () => 'cut',
    );
    t.match(rest, /^(E0523|cut)$/, 'over REST, no whole answer');
    t.ok(data.fired);
  });

  await t.test('while a large message is written', async (t) => {
    const text = 'x'.repeat(60_000);
    const large = { text: 'select id from osl.entities.account where name = $1', values: [text] };
    t.same((await client.query(large)).rows, [], 'as it is answered otherwise');
    data.arm({ direction: 'up', after: 20_000, deed: 'reset' });
    const found = await client.query(large).then(
      ({ rows }) => rows,
      (error: unknown) => (error instanceof pg.DatabaseError ? error.code : error),
    );
    t.ok(data.fired);
    t.ok(found === '08006' || (Array.isArray(found) && found.length === 0), 'it fails, or is sent again');
    data.arm(null);
  });

  await t.test('while a statement is cancelled', async (t) => {
    const holder = new pg.Client(world.house.postgres.url);
    await holder.connect();
    t.teardown(() => holder.end());
    for (const after of [0, 8]) {
      // Connects before the lock, whose own timeout must not come before the cancellation.
      const other = new pg.Client({ ...connectionOf(client), password: await gateway.token() });
      await other.connect();
      await holder.query('begin; lock table shop.big in access exclusive mode');
      const waits = client.query(`${BIG} where id = ${after}`).then(
        () => 'answered',
        (error: unknown) => (error instanceof pg.DatabaseError ? String(error.code) : String(error)),
      );
      while (
        (await world.house.admin("select from pg_stat_activity where wait_event_type = 'Lock'")).length === 0
      )
        await sleep(20);
      data.arm({ direction: 'up', after, deed: 'reset' });
      await other.query(`select pg_cancel_backend(${Number(Reflect.get(client, 'processID'))})`);
      t.equal(await waits, '57014', 'the caller is told, though the request to the server was lost');
      while (!data.fired) await sleep(10); // the caller does not wait for the request
      data.arm(null);
      await holder.query('rollback');
      await other.end();
    }
    t.equal((await client.query(BIG)).rows.length, 60_000);
  });
  await client.end();
  await healed(gateway);
}

function connectionOf({ host, port, user, database }: pg.Client): pg.ClientConfig {
  return { host, port, ...(user !== undefined && { user }), ...(database !== undefined && { database }) };
}
