import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'tap';
import { openEngine } from '../../src/engine/index.js';
import { WireError } from '../../wire/index.js';
import { startOwnPostgres } from '../support/native-postgres.js';
import { bind, execute, flush, parse, query, startup, sync } from './support/bytes.js';
import { Client } from './support/client.js';
import { eventually, Scripted } from './support/scripted.js';

const STOPPED = ['E FATAL 57P01 terminating connection due to administrator command', 'closed'];

const TIMED_OUT = ['E FATAL 57P05 terminating connection due to idle-session timeout', 'closed'];
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('an idle session ends with 57P05 after the whole of its time; one that works or asks does not', async (t) => {
  const limit = 2_000;
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ idleTimeoutMs: limit });
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(query('hold'));
  await pause(limit + 500);
  handler.sessions[0]?.release();
  t.same(await client.until('Z'), ['C HOLD', 'Z I']);
  const until = performance.now() + limit + 500;
  let asked = performance.now();
  while (asked < until) {
    await pause(100);
    asked = performance.now();
    client.send(query('noop'));
    t.equal((await client.until('Z')).at(-1), 'Z I');
  }
  t.same(await client.rest(), TIMED_OUT);
  t.ok(performance.now() - asked >= limit - 1, 'not before');
  await eventually(() => handler.sessions[0]?.closed === 1);
});

test('the shorter of the limits of server and session ends it', async (t) => {
  const own = new WireError('FATAL', '25P03', 'the limit of the session');
  const OWN = ['E FATAL 25P03 the limit of the session', 'closed'];
  const cases = [
    { server: 60_000, session: 50, ends: OWN },
    { server: 0, session: 50, ends: OWN },
    { server: 50, session: 60_000, ends: TIMED_OUT },
  ];
  for (const { server, session, ends } of cases) {
    const handler = new Scripted();
    const { port, stop } = await handler.serve({ idleTimeoutMs: server });
    t.teardown(stop);
    const client = await Client.ready(port);
    const [scripted] = handler.sessions;
    if (scripted !== undefined) scripted.idleLimit = { ms: session, reason: own };
    client.send(query('noop'));
    const heard = await client.rest();
    t.same(heard.slice(-2), ends, `${server} ms and ${session} ms`);
  }
});

test('stop ends idle sessions, lets running ones end and accepts nobody', async (t) => {
  const handler = new Scripted();
  const { server, port } = await handler.serve();
  const idle = await Client.ready(port);
  const inBlock = await Client.ready(port);
  t.same(await inBlock.ask(query('begin')), ['C BEGIN', 'Z T']);
  const unauthenticated = await Client.open(port);
  unauthenticated.send(startup({ user: 'ada' }));
  t.same(await unauthenticated.until('R 3'), ['R 3']);
  const running = await Client.ready(port);
  running.send(query('hold'));
  const midSeries = await Client.ready(port);
  midSeries.send(parse('', 'rows 1'), bind('', ''), execute(), flush);
  t.same(await midSeries.until('C'), ['1', '2', 'D 1', 'C SELECT 1']);
  await eventually(() => handler.sessions.some((s) => s.waiting));

  const stopped = server.stop(5_000);
  t.same(await idle.rest(), STOPPED);
  t.same(await inBlock.rest(), STOPPED);
  t.same(await unauthenticated.rest(), STOPPED);
  await t.rejects(Client.open(port), { code: 'ECONNREFUSED' });
  midSeries.send(sync);
  t.same(await midSeries.rest(), ['Z I', ...STOPPED]);
  for (const session of handler.sessions) session.release();
  t.same(await running.rest(), ['C HOLD', 'Z I', ...STOPPED]);
  await stopped;
  t.equal(server.connections, 0);
  t.ok(handler.sessions.every((s) => s.closed === 1));
});

test('stop ends what still runs at its deadline', async (t) => {
  const handler = new Scripted();
  const { server, port } = await handler.serve();
  const running = await Client.ready(port);
  running.send(query('wait'));
  await eventually(() => handler.sessions[0]?.waiting === true);
  const stopped = server.stop(50);
  t.same(await running.rest(), STOPPED);
  await stopped;
  t.equal(handler.sessions[0]?.cancelled, 1);
  await eventually(() => handler.sessions[0]?.closed === 1);
});

test('the handler can end a session: now if idle, else after the statement', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const revoked = new WireError('ERROR', '28000', 'the token was revoked');
  const idle = await Client.ready(port);
  handler.sessions[0]?.control.end(revoked);
  t.same(await idle.rest(), ['E FATAL 28000 the token was revoked', 'closed']);
  const busy = await Client.ready(port);
  busy.send(query('hold; none'));
  await eventually(() => handler.sessions[1]?.waiting === true);
  handler.sessions[1]?.control.end(revoked);
  handler.sessions[1]?.release();
  t.same(await busy.rest(), ['C HOLD', 'E FATAL 28000 the token was revoked', 'closed']);
});

test('sessions do not see each other', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const [a, b] = [await Client.ready(port), await Client.ready(port)];
  t.same(await a.ask(parse('s', 'none'), sync), ['1', 'Z I']);
  t.same(await b.ask(bind('', 's'), sync), ['E ERROR 26000 prepared statement "s" does not exist', 'Z I']);
});

test('a bug is reported whole to us and not at all to the client', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  const session = handler.sessions[0];
  if (session === undefined) throw new Error('no session');
  session.split = () => {
    throw new TypeError('secret in split');
  };
  t.same(await client.ask(query('none')), ['E ERROR XX000 internal error', 'Z I']);
  session.expiry = () => {
    throw new TypeError('secret in expiry');
  };
  t.same(await client.ask(query('none')), ['E ERROR XX000 internal error', 'Z I']);
  session.noteFailure = () => {
    throw new TypeError('secret in noteFailure');
  };
  client.send(query('none'));
  t.match((await client.rest()).join('\n'), /FATAL XX000 internal error\nclosed$/);
  t.equal(
    handler.bugs.length,
    5,
    'the last was asked twice: for the statement, and for the end that came of it',
  );
  await eventually(() => session.closed === 1);
});

test('many idle sessions keep no timers busy', async (t) => {
  const { server, port, stop } = await new Scripted().serve({ idleTimeoutMs: 60_000 });
  t.teardown(stop);
  for (let i = 0; i < 200; i++) await Client.ready(port);
  t.equal(server.connections, 200);
  const before = process.cpuUsage();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const { user, system } = process.cpuUsage(before);
  t.ok(user + system < 150_000, `${(user + system) / 1000} ms of CPU in 500 ms`);
});

/**
 * So that a peer whose host has vanished does not hold a session for ever: the kernel's own table says of a socket whether
 * its keepalive timer runs. Of a connection over loopback both ends stand there, each with its timer.
 */
const TABLE = '/proc/net/tcp';
const skip = existsSync(TABLE) ? false : `no ${TABLE} here`;
const KEEPALIVE = '02';
const ESTABLISHED = '01';

/** Timers of the established sockets that have this port on their own side, by the port on the other. */
function timersOf(port: number): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const row of readFileSync(TABLE, 'utf8').trim().split('\n').slice(1)) {
    const [, local = '', remote = '', state = '', , timer = ''] = row.trim().split(/\s+/);
    if (Number.parseInt(local.split(':')[1] ?? '', 16) !== port || state !== ESTABLISHED) continue;
    found.set(Number.parseInt(remote.split(':')[1] ?? '', 16), timer.slice(0, 2));
  }
  return found;
}

test('a socket without keepalive has no such timer', { skip }, async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  const client = connect(port, '127.0.0.1');
  await once(client, 'connect');
  t.notOk([...timersOf(port).values()].includes(KEEPALIVE));
  client.destroy();
  server.close();
});

test('clients are probed while they are silent', { skip }, async (t) => {
  const { server, port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = connect(port, '127.0.0.1');
  await once(client, 'connect');
  while (server.connections === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  t.equal(timersOf(port).get(client.localPort ?? 0), KEEPALIVE);
  client.destroy();
});

// One of its own: the connections of the machine to it are counted.
const postgres = skip === false ? await startOwnPostgres() : null;

test('and so are upstreams', { skip: postgres === null ? 'no native Postgres here' : skip }, async (t) => {
  if (postgres === null) return;
  const engine = await openEngine({
    kind: 'postgres',
    url: postgres.readerUrl,
    systemUrl: null,
    poolSize: 1,
  });
  t.teardown(async () => {
    await engine.close();
    await postgres.stop();
  });
  t.equal(await engine.governed.status.unhealthyReason(), null);
  const upstream = Number(new URL(postgres.url).port);
  const ours = [...timersOf(upstream).keys()].map((local) => timersOf(local).get(upstream));
  t.ok(ours.length >= 1);
  t.same([...new Set(ours)], [KEEPALIVE]);
});
