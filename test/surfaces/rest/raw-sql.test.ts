import type { Client } from 'pg';
import t, { test } from 'tap';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { connectPg } from '../../support/pg-client.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { startRest } from './fixture.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

/** `{sql}` and its twin on the wire, over a shop that allows its customers, orders and lines as tables. */

const rest = await startRest();
const wire = createPgFrontend(rest.test.service);
const { port } = await wire.listen(0, '127.0.0.1');

async function client(subject: string): Promise<Client> {
  const password = await rest.test.token(subject);
  const opened = await connectPg({ port, user: subject, password });
  return opened;
}

const PEOPLE = 'SELECT id, name, email FROM shop.customers ORDER BY id LIMIT 2';

test('raw SQL', async (t) => {
  t.teardown(async () => {
    await wire.stop(1_000);
    await rest.close();
  });

  await t.test('answers as OSL-SQL does: masks, sources, redacted columns', async (t) => {
    const raw = await rest.ask('user:ann', { sql: PEOPLE });
    const osql = await rest.ask('user:ann', { osql: PEOPLE.replace('shop.customers', 'customer') });
    t.equal(raw.status, 200, raw.text);
    const { request_id: _, form, ...answer } = raw.json();
    const { request_id: __, form: structured, ...same } = osql.json();
    t.equal(form, 'sql');
    t.equal(structured, 'structured');
    t.strictSame(answer, same);
    t.match(answer, {
      rows: [
        { id: 1, name: 'Ada', email: '[redacted]' },
        { id: 2, name: 'Bo', email: '[redacted]' },
      ],
      redacted_columns: ['customer.email'],
      columns: [{}, {}, { name: 'email', source: 'osl.entities.customer.email' }],
    });
  });

  await t.test('row filters hold, and parameters are bound', async (t) => {
    const sql = 'SELECT id, region FROM shop.customers WHERE id > $1 ORDER BY id';
    const eu = await rest.ask('user:eu', { sql, parameters: [1] });
    t.match(eu.json(), { rows: [{ id: 2, region: 'eu' }], row_count: 1 });
    const us = await rest.ask('user:us', { sql, parameters: ['0'] });
    t.match(us.json(), { row_count: 2 });
    t.match((await rest.ask('user:eu', { sql })).json(), { status: 400, code: 'E0511' });
  });

  await t.test('refuses what is outside the allowlist, whatever the reason, in one way', async (t) => {
    const seen = new Set<string>();
    for (const [subject, table] of [
      ['user:ann', 'shop.samples'],
      ['user:eu', 'shop.lines'],
      ['user:ann', 'shop.nowhere'],
      ['user:ann', 'pg_catalog.pg_class'],
      ['user:ann', 'information_schema.tables'],
      ['user:ann', 'osl.entities.customer'],
      ['user:ann', 'osl.entities.nothing'],
    ] as const) {
      const reply = await rest.ask(subject, { sql: `SELECT 1 FROM ${table}` });
      const { request_id: _, detail, instance: __, ...problem } = reply.json();
      t.equal(reply.status, 403, table);
      seen.add(JSON.stringify({ ...problem, detail: String(detail).replace(table, '<table>') }));
      t.match(await rest.trail(reply.requestId), [
        { action: 'query', subject, decision: 'deny', code: 'E0512' },
      ]);
    }
    t.equal(seen.size, 1, [...seen].join('\n'));
    const near = await rest.ask('user:eu', { sql: 'SELECT 1 FROM shop.customer' });
    t.match(near.json(), { hint: 'perhaps you meant `shop.customers`' });
    const hidden = await rest.ask('user:eu', { sql: 'SELECT 1 FROM shop.line' });
    t.notMatch(hidden.text, 'shop.lines', 'what the caller may not see is no suggestion');
  });

  await t.test('empty, or anything but one SELECT', async (t) => {
    for (const [sql, code] of [
      ['', 'E0246'],
      [' \n\t', 'E0246'],
      ['-- nothing', 'E0246'],
      ['SELECT 1; SELECT 2', 'E0511'],
      ['DELETE FROM shop.customers', 'E0511'],
      ["COPY shop.customers TO '/tmp/x'", 'E0511'],
      ['EXPLAIN SELECT 1 FROM shop.customers', 'E0511'],
      ['SELECT * INTO x FROM shop.customers', 'E0511'],
      ['SELECT 1 FROM shop.customers FOR UPDATE', 'E0511'],
      ['WITH d AS (DELETE FROM shop.customers RETURNING 1) SELECT 1', 'E0511'],
    ] as const) {
      t.match((await rest.ask('user:ann', { sql })).json(), { status: 400, code }, sql);
    }
  });

  await t.test('explain shows the same plan, and runs nothing', async (t) => {
    const reply = await rest.ask('user:eu', { sql: PEOPLE, explain: true });
    t.match(reply.json(), {
      form: 'sql',
      objects: ['osl.entities.customer'],
      columns: [{}, {}, { source: 'osl.entities.customer.email' }],
    });
    t.notOk('rows' in reply.json());
    t.match(await rest.trail(reply.requestId), [{ action: 'explain' }, { outcome: 'ok', rows: 0 }]);
  });

  await t.test('the log has the form, the entity and no text', async (t) => {
    const { requestId } = await rest.ask('user:ann', { sql: PEOPLE });
    t.match(await rest.test.records(requestId), [
      { kind: 'decision', decision: 'allow', form: 'sql', objects: ['osl.entities.customer'] },
      { kind: 'outcome', outcome: 'ok', rows: 2 },
    ]);
    t.notMatch(JSON.stringify(await rest.test.records(requestId)), 'shop.customers');
  });

  await t.test('the same text as OSL-SQL is no plan of raw SQL, and the other way round', async (t) => {
    // In this order each would find the other's plan, were it not for the world in the key.
    t.equal((await rest.ask('user:ann', { sql: PEOPLE })).status, 200);
    t.match((await rest.ask('user:ann', { osql: PEOPLE })).json(), { status: 400, code: 'E0512' });
    const osql = 'SELECT count(*) FROM customer';
    t.equal((await rest.ask('user:ann', { osql })).status, 200);
    t.match((await rest.ask('user:ann', { sql: osql })).json(), { status: 403, code: 'E0512' });
  });

  await t.test('on the wire the names say what is meant', async (t) => {
    const ann = await client('user:ann');
    t.teardown(() => ann.end());
    t.strictSame((await ann.query(PEOPLE)).rows[0], { id: 1, name: 'Ada', email: '[redacted]' });
    t.equal((await ann.query('SELECT id FROM "order" LIMIT 3')).rowCount, 3, 'without a schema: an entity');
    t.equal(
      (await ann.query('SELECT id FROM shop.orders WHERE quantity > $1::int4', [38])).rowCount,
      2,
      'parameters',
    );
    const records = await rest.test.records();
    t.ok(records.some((r) => r.surface === 'wire' && r.form === 'sql'));
    t.ok(records.some((r) => r.surface === 'wire' && r.form === 'structured'));
    for (const [text, code] of [
      ['SELECT 1 FROM shop.samples', '42501'],
      ['SELECT 1 FROM shop.orders o JOIN customer c ON c.id = o.customer_id', '0A000'],
      ['SELECT measure(revenue) FROM shop.orders', '0A000'],
      ['SELECT 1 FROM customers', '42P01'],
    ] as const) {
      await t.rejects(ann.query(text), { code }, text);
    }
  });
});

test('without an allowlist there is no raw SQL', async (t) => {
  const closed = await startRest({ manifest: SHOP_MANIFEST.replace(/raw_sql:\n.*\n/, '') });
  t.teardown(() => closed.close());
  t.match((await closed.ask('user:ann', { sql: PEOPLE })).json(), { status: 403, code: 'E0512' });
  t.match((await closed.ask('user:ann', { osql: PEOPLE })).json(), { status: 400, code: 'E0512' });
});
