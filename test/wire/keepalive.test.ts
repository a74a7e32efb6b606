import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'tap';
import { openEngine } from '../../src/engine/index.js';
import { startOwnPostgres } from '../support/native-postgres.js';
import { Scripted } from './support/scripted.js';

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
  t.equal(await engine.governed.status.ailment(), null);
  const upstream = Number(new URL(postgres.url).port);
  const ours = [...timersOf(upstream).keys()].map((local) => timersOf(local).get(upstream));
  t.ok(ours.length >= 1);
  t.same([...new Set(ours)], [KEEPALIVE]);
});
