import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import tap, { test } from 'tap';
import { generatedSql, sql } from '../../../src/base/sql.js';
import { nativeOfRun } from '../../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../../support/shop.js';
import { type EventClient, subscribe } from './event-client.js';
import { eventually, type RestFixture, startRest } from './fixture.js';

/*
 * Subscriptions. Each caller is told of changes of what it sees, and of nothing else: not of hidden rows, hidden
 * columns, or updates that change nothing.
 */

const LIMITS = { all: 12, ofSubject: 3, leastMs: 1_000 };
const ORDERS = 'columns: [id, customer_id, region, quantity, amount, placed_at, note]';
const TRIGGER = sql`
  create function shop.told() returns trigger language plpgsql as $$
    begin perform pg_notify('osl_data', 'order'); return null; end $$;
  create trigger told after insert or update or delete or truncate on shop.orders
    for each statement execute function shop.told()`;
/** Longer than an interval, so that each subscription has run its query after a change. */
const TICK = 1_250;

const postgres = await nativeOfRun();
const rule = postgres === null ? 'watermark: placed_at' : 'notify: true';
const rest = await startRest({
  ...(postgres !== null && { postgres }),
  manifest: SHOP_MANIFEST.replace(ORDERS, `${ORDERS}\n    cache: { max_age: 86400, ${rule} }`),
  settings: { subscriptions: LIMITS },
});
const { system } = rest.test.engine;
if (postgres !== null) await system.script(TRIGGER);
tap.teardown(async () => {
  await rest.close();
  await postgres?.stop();
});

const EVERY_SECOND = { interval: 1 };
const FIGURES = 'select region, count(*) as n, sum(amount) as total from "order" group by region';

function change(text: string): Promise<unknown> {
  return system.script(generatedSql(text));
}

async function serve(policy: string): Promise<void> {
  writeFileSync(rest.test.policyFile, policy);
  await rest.test.open.reload();
}

async function openFor(fixture: RestFixture, user: string, body: object): Promise<EventClient> {
  const client = await subscribe(fixture, user, { ...body, ...EVERY_SECOND });
  tap.equal(client.status, 200, JSON.stringify(client.problem));
  return client;
}

test('each caller hears of changes of what it sees', async (t) => {
  const clients = {
    eu: await openFor(rest, 'user:eu', { entity: 'order' }),
    us: await openFor(rest, 'user:us', { entity: 'osl.entities.order' }),
    figures: await openFor(rest, 'user:ada', { osql: FIGURES }),
    metric: await openFor(rest, 'user:ada', { metrics: ['revenue'] }),
    customers: await openFor(rest, 'user:eu', { sql: 'select * from shop.customers' }),
    agent: await subscribe(
      rest,
      'user:eu',
      { entity: 'order', ...EVERY_SECOND },
      { chain: ['user:eu', 'agent:bot'], aclRoles: ['regional'] },
    ),
  };
  const all = Object.values(clients);
  t.teardown(() => {
    for (const client of all) client.close();
  });
  const counts = () => Object.fromEntries(Object.entries(clients).map(([k, c]) => [k, c.events.length]));
  const after = async (text: string, expected: Partial<ReturnType<typeof counts>>): Promise<void> => {
    const before = counts();
    await change(text);
    await setTimeout(TICK);
    const told = Object.entries(counts()).map(([k, n]) => [k, n - (before[k] ?? 0)]);
    const none = Object.fromEntries(Object.keys(clients).map((k) => [k, 0]));
    t.same(Object.fromEntries(told), { ...none, ...expected }, text);
  };
  await setTimeout(TICK);
  t.same(all.map((c) => c.names()).join(''), '', 'nothing has changed');
  await after("update shop.orders set note = 'x' where id = 1", { eu: 1, agent: 1 });
  await after('update shop.orders set quantity = 7 where id = 2', { us: 1 });
  await after('update shop.orders set amount = amount + 1 where id = 3', { us: 1, figures: 1, metric: 1 });
  await after('update shop.orders set amount = amount', {});
  await after('delete from shop.orders where id = 5', { eu: 1, agent: 1, figures: 1, metric: 1 });
  await after("update shop.customers set tax_no = 'other', born = '2000-01-01'", {});
  await after("update shop.customers set name = name || '!' where region = 'us'", {});
  await after("update shop.customers set name = name || '!' where id = 1", { customers: 1 });
  for (const { events } of all)
    for (const [i, { event, id, data }] of events.entries()) {
      t.equal(event, i === 0 ? 'ready' : 'changed');
      t.match(id, new RegExp(`^${i}\\.[\\w-]{22}$`));
      t.match(data, { request_id: String, versions: { manifest: String, policy: String } });
      t.same(Object.keys(data).sort(), ['request_id', 'versions'], 'no value of a row is sent');
    }
  const [decision, outcome] = await rest.trail(String(clients.eu.events[1]?.data['request_id']));
  t.match(decision, { kind: 'decision', action: 'subscribe', subject: 'user:eu', decision: 'allow' });
  t.match(outcome, { kind: 'outcome', outcome: 'ok', rows: 0 });
});
