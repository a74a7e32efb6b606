import { writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import type pg from 'pg';
import tap, { test } from 'tap';
import { generatedSql } from '../../../src/base/sql.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { eventually } from '../rest/fixture.js';
import { servePg } from './support.js';

const TICK = 1_250;
const ORDER = 'osl.entities.order';

const shop = await startTestService({
  settings: { subscriptions: { total: 10, perSubject: 2, minIntervalMs: 1_000 } },
});
const { connect } = await servePg(tap, shop);

async function heardBy(client: pg.Client): Promise<(pg.Notification | string)[]> {
  const heard: string[] = [];
  client.on('notification', ({ channel, payload }) =>
    heard.push(payload ? `${channel} ${payload}` : channel),
  );
  await client.query(`listen "${ORDER}"`);
  return heard;
}

function change(text: string): Promise<unknown> {
  return shop.engine.system.script(generatedSql(text));
}

test('LISTEN on an entity is told of what its caller sees', async (t) => {
  const [eu, us] = [await connect('user:eu'), await connect('user:us')];
  const [ofEu, ofUs] = [await heardBy(eu), await heardBy(us)];
  await eu.query(`listen "${ORDER}"`);
  t.equal(shop.service.subscriptions.open, 2, 'a channel is one subscription, however often it is named');
  await change("update shop.orders set note = 'x' where id = 1");
  await eventually(() => ofEu.length === 1);
  await setTimeout(TICK);
  t.same([ofEu, ofUs], [[ORDER], []]);
  await eu.query('begin');
  await change("update shop.orders set note = 'y' where id = 1");
  await setTimeout(2 * TICK);
  t.equal((await eu.query('select note from "order" where id = 1')).rows[0].note, 'y');
  t.equal(ofEu.length, 1, 'it waits for the end of the block');
  await eu.query('commit');
  await eventually(() => ofEu.length === 2);
  await eu.query(`unlisten "${ORDER}"`);
  t.equal((await eu.query('select 1 as one')).rows[0].one, 1);
  await eventually(() => shop.service.subscriptions.open === 1);
  await change('delete from shop.orders where id in (1, 2)');
  await eventually(() => ofUs.length === 1);
  t.equal(ofEu.length, 2);
  const records = await shop.records();
  t.ok(records.some((r) => r.action === 'subscribe' && r.subject === 'user:us' && r.surface === 'wire'));
  await us.end();
  await eventually(() => shop.service.subscriptions.open === 0);
});

test('a channel ends with the right to its entity', async (t) => {
  const eu = await connect('user:eu');
  const heard = await heardBy(eu);
  writeFileSync(
    shop.policyFile,
    SHOP_POLICY.replace(
      '- { on: order, columns: "*", rows: "region',
      '- { on: product, columns: "*", rows: "label',
    ),
  );
  await shop.open.reload();
  await eventually(() => heard.length === 1);
  t.match(heard[0], /^osl\.entities\.order ended: E0512 /);
  t.equal(shop.service.subscriptions.open, 0);
  writeFileSync(shop.policyFile, SHOP_POLICY);
  await shop.open.reload();
});

test('a session that listens ends with its token', async (t) => {
  const issuedAt = Math.floor(Date.now() / 1_000) - 300 - 27; // accepted for about three more seconds
  const client = await connect('user:ada', await shop.token('user:ada', { issuedAt }));
  const ended = new Promise((resolve) => client.on('error', resolve));
  const heard = await heardBy(client);
  t.match(await ended, { code: '28000' });
  t.same(heard, []);
  await eventually(() => shop.service.subscriptions.open === 0);
});

test('what is refused', async (t) => {
  const eu = await connect('user:eu');
  const code = async (...texts: string[]): Promise<string> => {
    for (const text of texts.slice(0, -1)) await eu.query(text);
    return eu.query(texts.at(-1) ?? '').then(
      () => 'nothing',
      (error: pg.DatabaseError) => `${error.code}`,
    );
  };
  t.equal(await code('listen "osl.entities.nothing"'), '42P01');
  t.equal(await code('listen "osl.entities.product"'), '42P01', 'hidden is as absent');
  await t.rejects(eu.query('listen anything'), {
    code: '25006',
    hint: 'LISTEN takes the channel of an entity, "osl.entities.<name>", and no other',
  });
  t.equal(await code(`notify "${ORDER}"`), '25006');
  t.equal(await code('begin', `listen "${ORDER}"`), '25001');
  await eu.query('rollback');
  t.equal(await code(`listen "${ORDER}"; select 1`), '25001');
  await eu.query(`listen "${ORDER}"; `);
  await eu.query('listen "osl.entities.customer"');
  const other = await connect('user:eu');
  await t.rejects(
    other.query(`listen "${ORDER}"`),
    { code: '53400' },
    'two are as many as a subject may have',
  );
  await eu.query('discard all');
  await eventually(() => shop.service.subscriptions.open === 0);
  t.equal((await other.query(`listen "${ORDER}"`)).command, 'LISTEN');
});
