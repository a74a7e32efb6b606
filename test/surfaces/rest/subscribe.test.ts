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

const LIMITS = { total: 8, perSubject: 3, minIntervalMs: 1_000 };
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

/** Events of a client, without those of a check during which the policy was replaced. */
function toldBy(client: EventClient): string {
  return client.names().replaceAll(/retrying E2003(, )?/g, '');
}

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
  type Counts = Record<keyof typeof clients, number>;
  const expected: Counts = { eu: 0, us: 0, figures: 0, metric: 0, customers: 0, agent: 0 };
  const counts = () => Object.entries(clients).map(([name, c]) => [name, c.events.length - 1] as const);
  const after = async (text: string, more: Partial<Counts>): Promise<void> => {
    await change(text);
    for (const name of Object.keys(more) as (keyof Counts)[]) expected[name] += 1; // cast: keys of its type
    await eventually(() => counts().every(([name, n]) => n >= expected[name as keyof Counts])); // cast: see above
    t.same(Object.fromEntries(counts()), expected, text);
  };
  await setTimeout(TICK);
  t.same(all.map((c) => c.names()).join(''), '', 'nothing has changed');
  await after("update shop.orders set note = 'x' where id = 1", { eu: 1, agent: 1 });
  await after('update shop.orders set quantity = 7 where id = 2', { us: 1 });
  await after('update shop.orders set amount = amount + 1 where id = 3', { us: 1, figures: 1, metric: 1 });
  await after(
    `update shop.orders set amount = amount;
    update shop.customers set tax_no = 'hidden', born = '2000-01-01';
    update shop.customers set name = name || '!' where region = 'us'`,
    {},
  );
  await setTimeout(TICK);
  await after(
    `delete from shop.orders where id = 5; update shop.customers set name = name || '!' where id = 1`,
    { eu: 1, agent: 1, figures: 1, metric: 1, customers: 1 },
  );
  await setTimeout(TICK);
  t.same(Object.fromEntries(counts()), expected, 'and nothing else');
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

test('a client that comes back hears of what it has missed', async (t) => {
  const question = { osql: 'select note from "order" where id = $1', parameters: [9] };
  const first = await openFor(rest, 'user:eu', question);
  first.close();
  const last = String(first.events[0]?.id);
  const back = (id: string) =>
    subscribe(rest, 'user:eu', { ...question, ...EVERY_SECOND }, { headers: { 'last-event-id': id } });
  const unchanged = await back(last);
  await change("update shop.orders set note = 'missed' where id = 9");
  await eventually(() => unchanged.events.length === 2);
  unchanged.close();
  t.equal(unchanged.events[0]?.id, last, 'the same answer has the same id');
  const missed = await back(last);
  await eventually(() => missed.events.length === 2);
  missed.close();
  t.match(missed.events, [
    { event: 'ready', id: null },
    { event: 'changed', id: unchanged.events[1]?.id },
  ]);
  const own = String(unchanged.events[1]?.id);
  const other = await subscribe(
    rest,
    'user:ada',
    { ...question, ...EVERY_SECOND },
    { headers: { 'last-event-id': own } },
  );
  await eventually(() => other.events.length === 2);
  t.not(other.events[1]?.id?.split('.')[1], own.split('.')[1], 'ids of two callers do not compare');
  other.close();
  for (const id of ['junk', '1.short', `-1.${'a'.repeat(22)}`]) {
    const foreign = await back(id);
    await eventually(() => foreign.events.length === 2);
    foreign.close();
    t.match(foreign.events[1]?.id, /^1\./, id);
  }
});

test('a subscription ends with the right, the token, or a revocation', async (t) => {
  t.teardown(() => serve(SHOP_POLICY));
  const body = { osql: 'select id, email from customer' };
  const eu = await openFor(rest, 'user:eu', body);
  const us = await openFor(rest, 'user:us', body);
  const ann = await openFor(rest, 'user:ann', body);
  const issuedAt = Math.floor(Date.now() / 1_000) - 300 - 28; // accepted for about two more seconds
  const short = await subscribe(rest, 'user:ada', { ...body, ...EVERY_SECOND }, { issuedAt });
  await serve(SHOP_POLICY.replace('attributes: { region: eu }', 'attributes: { region: us }'));
  await eventually(() => toldBy(eu) !== '');
  t.equal(toldBy(eu), 'changed', 'the policy shows other rows');
  t.equal(toldBy(us) + toldBy(ann), '', 'and the same to others');
  await rest.test.service.revocations.revoke({ kind: 'subject', name: 'user:ann' });
  await serve(
    SHOP_POLICY.replace('columns: [id, name, email, region]', 'columns: [id, name, region]').replace(
      'user:us: { ceiling: [regional]',
      'user:us: { ceiling: []',
    ),
  );
  await Promise.all([eu, us, ann, short].map((client) => client.ended));
  t.equal(toldBy(eu), 'changed, ended E0512', 'the column is hidden now');
  t.equal(toldBy(us), 'ended E2102');
  t.equal(toldBy(ann), 'ended E3001');
  t.equal(toldBy(short), 'ended E3001');
  t.equal(rest.test.service.subscriptions.open, 0);
  const [refusal] = await rest.trail(String(us.events.at(-1)?.data['request_id']));
  t.match(refusal, { action: 'subscribe', subject: 'user:us', decision: 'deny', code: 'E2102' });
});

const UNDETERMINED: readonly (readonly [osql: string, reason: RegExp])[] = [
  ['select id from "order" limit 3', /LIMIT/],
  ['select id from "order" order by id offset 1', /OFFSET/],
  ['select id from "order" where id in (select id from "order" limit 1)', /LIMIT/],
  ['select distinct on (region) id from "order" order by region', /DISTINCT ON/],
  ['select sum(real8) from sample', /sum of float8/],
  ['select max(amount) from "order"', /type numeric/],
  ['select amount, count(*) from "order" group by amount', /type numeric/],
  ['select distinct amount from "order"', /type numeric/],
  ['select sum(distinct amount) from "order"', /type numeric/],
  ['select amount from "order" union select amount from "order"', /type numeric/],
  ['select string_agg(note, \',\') from "order"', /string_agg/],
  ['select row_number() over (order by region) from "order"', /window/],
  ['select now(), id from "order"', /clock/],
  ['select id from "order" tablesample system (50)', /chance/],
  ['select 1 as one', /no entity/],
  ["select text from retrieve(facet => 'labels', query => 'tea', top_k => 1)", /RETRIEVE/],
];
const DETERMINED = [
  'select id, amount / 3, real8 from "order" join sample using (id) order by amount',
  'select region, count(distinct note), min(placed_at), avg(amount) from "order" group by region having max(id) > 1',
  'select distinct region from "order" union all select region from customer',
];

test('what the rows determine can be subscribed to', async (t) => {
  for (const osql of DETERMINED) {
    const client = await subscribe(rest, 'user:ada', { osql });
    t.equal(client.status, 200, `${osql} ${JSON.stringify(client.problem)}`);
    client.close();
  }
  await eventually(() => rest.test.service.subscriptions.open === 0);
});

test('refused before the first event', async (t) => {
  const refusal = async (user: string, body: object, headers = {}): Promise<unknown> => {
    const { status, problem } = await subscribe(rest, user, body, { headers });
    return `${status} ${String(problem?.['code'])}`;
  };
  for (const [osql, reason] of UNDETERMINED) {
    const { status, problem } = await subscribe(rest, 'user:ada', { osql });
    t.match({ status, ...problem }, { status: 400, code: 'E0533', detail: reason }, osql);
  }
  t.equal(await refusal('user:ada', { entity: 'order', interval: 0 }), '400 E0511');
  t.equal(await refusal('user:ada', { osql: 'select 1 as one', entity: 'order' }), '400 E0513');
  t.equal(await refusal('user:ada', { osql: 'select id from "order"', explain: true }), '400 E0511');
  t.equal(
    await refusal('user:ada', { osql: `select id from "order" -- ${'x'.repeat(70_000)}` }),
    '400 E0511',
  );
  t.equal(await refusal('user:ada', { entity: 'nothing' }), '400 E0512');
  t.equal(await refusal('user:nil', { entity: 'order' }), '403 E2102');
  t.equal(await refusal('user:eu', { entity: 'product' }), '400 E0512');
  t.equal(await refusal('user:eu', { entity: 'order' }, { authorization: 'Bearer x' }), '401 E3001');
  t.equal(rest.test.service.subscriptions.open, 0, 'none of them is counted');
  const open = await Promise.all(
    ['eu', 'eu', 'eu', 'us', 'us', 'us', 'ada', 'ada'].map((user) =>
      openFor(rest, `user:${user}`, { entity: 'order', interval: 300 }),
    ),
  );
  t.equal(await refusal('user:eu', { entity: 'order' }), '429 E4290');
  t.equal(await refusal('user:ada', { entity: 'order' }), '503 E5031');
  open[0]?.close();
  await eventually(() => rest.test.service.subscriptions.open === 7);
  const again = await openFor(rest, 'user:eu', { entity: 'order' });
  rest.test.service.drain(true);
  t.teardown(() => rest.test.service.drain(false));
  await again.ended;
  t.equal(again.names(), 'ended E5032');
  for (const client of open) client.close();
  await eventually(() => rest.test.service.subscriptions.open === 0);
  t.equal(await refusal('user:eu', { entity: 'order' }), '503 E5032');
});
