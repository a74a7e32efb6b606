import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { files, MANIFEST, POLICY, TABLES } from './store.js';
import { asked, logged, type Place, served, tokenFor } from './support.js';

/** kill -9 of the running gateway: no answer that a caller has is without its record, however the log is synced. */

const ROUNDS = Number(process.env['OSL_KILL_ROUNDS'] ?? 1);
const CALLERS = 8;
const QUERY = 'select id from osl.entities.account order by id limit 1';

/** Answers that callers received before the server was killed. */
interface Received {
  /** Ids of requests over REST. */
  readonly requests: Set<string>;
  /** Number of answers on the Postgres port. */
  wire: number;
}

async function overRest(server: Server, token: string, received: Received): Promise<void> {
  for (;;) {
    const headers = { authorization: `Bearer ${token}` };
    const reply = await asked(server, '/osl/query', { osql: QUERY }, headers).catch(() => null);
    if (reply === null) return;
    if (reply.status !== 200) throw new Error(`${reply.status} ${reply.body}`);
    received.requests.add(String((JSON.parse(reply.body) as { request_id: string }).request_id));
  }
}

async function overWire(server: Server, password: string, received: Received): Promise<void> {
  const { pgPort: port } = server.record();
  const client = new pg.Client({
    host: '127.0.0.1',
    port: Number(port),
    user: 'user:analyst',
    password,
    database: 'osl',
  });
  client.on('error', () => undefined);
  // The kill ends it, here or in a query.
  const isConnected = await client.connect().then(
    () => true,
    () => false,
  );
  for (let answered = isConnected; answered; ) {
    answered = await client.query(QUERY).then(
      () => true,
      () => false,
    );
    if (answered) received.wire += 1;
  }
}

/** Resolves when both ports have answered a few more times, or `isOver`. */
async function answeredOnBoth(received: Received, isOver: () => boolean): Promise<void> {
  const [requests, wire] = [received.requests.size + 20, received.wire + 20];
  while (!isOver() && (received.requests.size < requests || received.wire < wire)) await sleep(5);
}

/** Asks from all sides until the server is killed. */
async function killedWhileAsked(server: Server, where: Place, received: Received): Promise<void> {
  const token = await tokenFor(where.dataDir);
  const callers = Array.from({ length: CALLERS }, (_, i) =>
    (i % 2 === 0 ? overRest : overWire)(server, token, received),
  );
  let isOver = false;
  const all = Promise.all(callers).finally(() => {
    isOver = true;
  });
  await Promise.race([all, answeredOnBoth(received, () => isOver)]);
  await sleep(Math.random() * 300);
  await server.signal('SIGKILL');
  await all;
}

t.setTimeout(0);
const native = await startNativePostgres();
const skip = native === null ? NO_NATIVE : false;
t.teardown(() => native?.stop());

if (native !== null) {
  const admin = new pg.Client(native.url);
  await admin.connect();
  await admin.query(TABLES);
  await admin.end();
}

for (const sync of ['disk', 'kernel'] as const)
  t.test(`sync ${sync}, ${ROUNDS} kills`, { timeout: 0, skip }, async (t) => {
    const where = files(MANIFEST, POLICY.replace('query: 1000', 'query: 1000000'));
    const env = { OSL_AUDIT_SYNC: sync, STORE_URL: native?.readerUrl ?? '' };
    const received: Received = { requests: new Set(), wire: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const server = await served(t, where, env);
      const health = JSON.parse((await asked(server, '/health')).body) as Record<string, unknown>;
      t.equal(health['audit_sync'], sync === 'kernel' ? 'kernel' : undefined);
      t.equal(
        logged(server).filter((line) => line['setting'] === 'OSL_AUDIT_SYNC=kernel').length,
        sync === 'kernel' ? 1 : 0,
      );
      await killedWhileAsked(server, where, received);
    }
    await (await served(t, where, env)).signal('SIGTERM');
    const missing = new Set(received.requests);
    let wire = 0;
    for await (const record of readRecords(join(where.dataDir, 'audit'))) {
      if (record.kind !== 'decision' || record.decision !== 'allow') continue;
      missing.delete(record.request_id);
      if (record.surface === 'wire' && record.action === 'query') wire += 1;
    }
    t.ok(received.requests.size >= 20 * ROUNDS, `${received.requests.size} answers over REST`);
    t.ok(received.wire >= 20 * ROUNDS, `${received.wire} answers on the Postgres port`);
    t.same([...missing], []);
    t.ok(wire >= received.wire, `${wire} records of the Postgres port`);
    const told = await osl(['audit', 'verify', '--data-dir', where.dataDir]);
    t.equal(told.code, 0, told.stderr);
    t.equal(/sync {10}kernel: a power failure may have lost/.test(told.stdout), sync === 'kernel');
  });
