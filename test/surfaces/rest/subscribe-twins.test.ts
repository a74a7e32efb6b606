import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fastify } from 'fastify';
import tap, { test } from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { makeKeys } from '../../../src/service/keys.js';
import { EventStream } from '../../../src/surfaces/rest/routes/subscribe.js';
import { engineOfRun, nativeOfRun } from '../../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../../support/shop.js';
import { type EventClient, subscribe } from './event-client.js';
import { eventually, type RestFixture, startRest } from './fixture.js';

/*
 * Two worlds with the same visible rows. In one, hidden rows exist and change all the time. Their event streams are the
 * same, byte by byte, but for request ids and the times of the clock; so are their quotas.
 */

const ORDERS = 'columns: [id, customer_id, region, quantity, amount, placed_at, note]';
const TRIGGER = sql`
  create function shop.told() returns trigger language plpgsql as $$
    begin perform pg_notify('osl_data', 'order'); return null; end $$;
  create trigger told after insert or update or delete or truncate on shop.orders
    for each statement execute function shop.told()`;
/** Each run reads the 20 visible orders, so that the ninth is refused. */
const POLICY = SHOP_POLICY.replace(
  '  regional:\n',
  '  regional:\n    limits: [{ per: hour, rows: 150, each: subject }]\n',
).replace(
  '  no_addresses:\n',
  '  no_addresses:\n    limits: [{ per: hour, seconds: 1000, each: subject }]\n',
);
const isEmbedded = engineOfRun() === 'pglite';
const keysDir = join(mkdtempSync(join(tmpdir(), 'osl-keys-')), 'keys');
makeKeys(join(keysDir, '..'), keysDir);
tap.teardown(() => rmSync(join(keysDir, '..'), { recursive: true }));

async function world(): Promise<RestFixture> {
  const postgres = await nativeOfRun();
  const rule = postgres === null ? 'watermark: placed_at' : 'notify: true';
  const rest = await startRest({
    ...(postgres !== null && { postgres }),
    manifest: SHOP_MANIFEST.replace(ORDERS, `${ORDERS}\n    cache: { max_age: 86400, ${rule} }`),
    policy: POLICY,
    settings: { keysDir, subscriptions: { total: 10, perSubject: 10, minIntervalMs: 1_000 } },
  });
  tap.teardown(async () => {
    await rest.close();
    await postgres?.stop();
  });
  if (postgres !== null) await rest.test.engine.system.script(TRIGGER);
  return rest;
}

/** Ids of the runs for user:eu so far. */
async function runsOf(rest: RestFixture): Promise<readonly string[]> {
  const all = await rest.test.records();
  return all
    .filter((r) => r.kind === 'decision' && r.action === 'subscribe' && r.subject === 'user:eu')
    .map((r) => r.request_id);
}

/** The stream without what differs from run to run. */
function seen({ events }: EventClient): string {
  return events
    .map(({ event, id, data }) => {
      const text = JSON.stringify(data).replace(/in \d+ s/, 'later');
      // The manifests of the two worlds differ in the name of the variable with their database's URL.
      return `${event} ${id} ${text.replace(/"request_id":"[^"]+"/, '').replace(/"manifest":"[^"]+"/, '')}`;
    })
    .join('\n');
}

const [quiet, busy] = await Promise.all([world(), world()]);

function change({ test: { engine } }: RestFixture, text: string): Promise<unknown> {
  return engine.system.script(generatedSql(text));
}

test('hidden rows change nothing in the events of their twin', async (t) => {
  const hidden = (n: number) =>
    change(
      busy,
      `insert into shop.orders values (${5000 + n}, 1, 'us', 1, 1, now(), 'hidden');
      update shop.orders set amount = amount + 1, placed_at = now() where region = 'us';
      delete from shop.orders where id = ${4999 + n}`,
    );
  await hidden(0);
  const open = (rest: RestFixture) => subscribe(rest, 'user:eu', { entity: 'order', interval: 1 });
  const clients = await Promise.all([open(quiet), open(busy)]);
  for (const [n, visible] of [
    "set note = 'a' where id = 1",
    null,
    'set quantity = 9 where id = 4',
  ].entries()) {
    await hidden(n + 1);
    const worlds = [quiet, busy];
    if (visible !== null)
      await Promise.all(worlds.map((rest) => change(rest, `update shop.orders ${visible}`)));
    const before = await Promise.all(worlds.map(runsOf));
    for (const [i, rest] of worlds.entries())
      await eventually(async () => (await runsOf(rest)).length > (before[i]?.length ?? 0));
  }
  for (const { events } of clients) await eventually(() => events.at(-1)?.event === 'retrying');
  for (const client of clients) client.close();
  const [one = '', other] = clients.map(seen);
  t.equal(other, one);
  t.match(one, /^ready 0\..*\nchanged 1\..*\nchanged 2\..*\nretrying null .*"E4290"/);
  for (const [i, rest] of [quiet, busy].entries()) {
    const refused = String(clients[i]?.events.at(-1)?.data['request_id']);
    t.equal((await runsOf(rest)).indexOf(refused), 8, 'runs without a change are paid for as those with one');
  }
});

test('without a notification a query does not run again, and none is missed', async (t) => {
  if (isEmbedded) return void t.pass('an embedded database sends no notifications');
  const client = await subscribe(quiet, 'user:ada', { entity: 'order', interval: 1 });
  const den = await subscribe(quiet, 'user:den', { entity: 'order', interval: 1 });
  const runsBy = async (subject: string): Promise<string> => {
    const all = await quiet.test.records();
    const ids = all.filter((r) => r.subject === subject && r.action === 'subscribe').map((r) => r.request_id);
    const outcomes = all.filter((r) => r.kind === 'outcome' && ids.includes(r.request_id));
    return outcomes.map(({ detail }) => (`${detail}`.includes('cached') ? 'c' : 'r')).join('');
  };
  await eventually(async () => (await runsBy('user:ada')).endsWith('ccc'));
  t.equal(client.names(), '', 'nothing has changed');
  den.close();
  t.match(await runsBy('user:den'), /^rrr+$/, 'a caller with a quota of database time pays for it each time');
  await change(quiet, "update shop.orders set note = 'b' where region = 'us'");
  await eventually(() => client.events.length === 2);
  await eventually(async () => (await runsBy('user:ada')).endsWith('c'));
  // The notification of this change reaches nobody.
  await change(
    quiet,
    `select pg_terminate_backend(pid, 1000) from pg_stat_activity
      where application_name = 'osl results' and datname = current_database();
    update shop.orders set note = 'c' where region = 'us'`,
  );
  await eventually(() => client.events.length === 3);
  client.close();
  t.equal(client.names(), 'changed, changed');
});

test('a client that does not read is disconnected', async (t) => {
  const app = fastify();
  t.teardown(() => app.close());
  let sent = 0;
  const dropped = new Promise<void>((resolve) => {
    app.get('/', async (_request, reply) => {
      const stream = new EventStream(reply, 'id');
      reply.raw.once('close', () => {
        stream.end();
        resolve();
      });
      const more = (): void => {
        for (let n = 0; n < 100 && !reply.raw.destroyed; n++, sent++) stream.send('changed', '1', { n });
        if (!reply.raw.destroyed) setImmediate(more);
      };
      more();
      return reply;
    });
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo; // cast: it listens on TCP
  const socket = connect(port, '127.0.0.1')
    .on('error', () => undefined)
    .pause();
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await dropped;
  socket.destroy();
  t.ok(sent > 0);
});

test('a server that stops says so', async (t) => {
  const client = await subscribe(busy, 'user:ada', { entity: 'order', interval: 300 });
  const begun = performance.now();
  await busy.server.close(10_000);
  await client.ended;
  t.equal(client.names(), 'ended E5032');
  t.ok(performance.now() - begun < 5_000, 'it does not wait for subscriptions');
});
