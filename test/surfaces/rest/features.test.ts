import { FEATURES, type Feature } from 'osl-compiler';
import t, { test } from 'tap';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { connectPg } from '../../support/pg-client.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { startRest } from './fixture.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

/** A tenant that has switched set operations and subqueries off, asked through REST and the wire. */

const OFF = 'features: { set_operations: false, subqueries: false, joins: any }';

const rest = await startRest({ manifest: `${SHOP_MANIFEST}${OFF}\n` });
const wire = createPgFrontend(rest.test.service);
const { port } = await wire.listen(0, '127.0.0.1');

const SETS = /^a set operation is switched off here, by `features\.set_operations` of the manifest$/;
const SUBQUERIES = /^a subquery as a value is switched off here, by `features\.subqueries` of the manifest$/;

const REFUSED: readonly (readonly [body: Readonly<Record<string, unknown>>, told: RegExp])[] = [
  [{ osql: 'select id from customer union select id from "order"' }, SETS],
  [{ osql: 'select id from customer union select id from "order"', explain: true }, SETS],
  [{ sql: 'select id from shop.customers except select id from shop.orders' }, SETS],
  [{ osql: 'select id, (select count(*) from "order") from customer' }, SUBQUERIES],
  [{ osql: 'select id from customer where id in (select customer_id from "order")' }, SUBQUERIES],
  [
    {
      osql: 'select id from customer c where exists (select 1 from "order" o where o.customer_id = c.id)',
      explain: true,
    },
    SUBQUERIES,
  ],
  [
    {
      sql: 'select id from shop.customers c where exists (select 1 from shop.orders o where o.customer_id = c.id)',
    },
    SUBQUERIES,
  ],
];

test('what the tenant has switched off', async (t) => {
  t.teardown(async () => {
    await wire.stop(1_000);
    await rest.close();
  });

  await t.test(
    'is refused with the name of its switch and a hint, recorded, and kept in no cache',
    async (t) => {
      for (const [body, told] of [...REFUSED, ...REFUSED]) {
        const reply = await rest.ask('user:ann', body);
        t.match(reply.json(), { status: 400, code: 'E0511', detail: told, hint: /./ }, JSON.stringify(body));
        t.match(await rest.trail(reply.requestId), [{ kind: 'decision', decision: 'error', code: 'E0511' }]);
      }
    },
  );

  await t.test('is refused on the wire', async (t) => {
    const password = await rest.test.token('user:ann');
    const ann = await connectPg({ port, user: 'user:ann', password });
    t.teardown(() => ann.end());
    for (const [body, told] of REFUSED) {
      const text = String(body['osql'] ?? body['sql']);
      await t.rejects(ann.query(text), { code: '0A000', message: told }, text);
      await t.rejects(ann.query({ text, name: `s${text.length}` }), { code: '0A000', message: told }, text);
    }
  });

  await t.test(
    'joins entities on any predicate, where the manifest says so, and never on a mask',
    async (t) => {
      const schema = await rest.send('/osl/schema?governed=true', {
        headers: { authorization: `Bearer ${await rest.test.token('user:ann')}` },
      });
      t.match(schema.json(), { features: { joins: 'any' } });
      const ask = async (on: string) =>
        (
          await rest.ask('user:ann', { osql: `select count(*) as n from customer c join "order" o ${on}` })
        ).json();
      const { json } = await rest.ask('user:ann', {
        sql: 'select count(*) as n from shop.customers c join shop.orders o on o.region = c.region',
      });
      t.match(json(), { rows: [{ n: /^[1-9]/ }] });
      t.same((await ask('on o.region = c.region')).rows, json().rows, 'as raw SQL over the tables');
      t.match(await ask('on o.quantity between c.id and c.id + 1'), { rows: [{ n: /^[1-9]/ }] });
      t.match(await ask('on o.note = c.email'), { status: 403, code: 'E0515' });
      t.match(await ask('on o.note is not distinct from c.email'), { status: 403, code: 'E0515' });
    },
  );

  await t.test('is told by the schema, and the rest answers', async (t) => {
    const headers = { authorization: `Bearer ${await rest.test.token('user:ann')}` };
    const schema = await rest.send('/osl/schema?governed=true', { headers });
    t.match(schema.json(), { features: { set_operations: false, subqueries: false } });
    t.notMatch(schema.text, 'set operations');
    const osql =
      'with t as (select id from customer where id in (1, 2)) select id from (select id from t) d order by 1';
    t.match((await rest.ask('user:ann', { osql })).json(), { rows: [{ id: 1 }, { id: 2 }] });
    t.match((await rest.ask('user:ann', { metrics: ['revenue'] })).json(), { code: undefined });
  });

  await t.test('is not switched by publishing', async (t) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${await rest.test.token('user:root', { roles: ['TENANT_ADMIN'] })}`,
    };
    const body = {
      fragment: 'features: { set_operations: false, subqueries: true, joins: any }',
      base_version: rest.test.service.model().manifest.version,
    };
    const published = await rest.send('/osl/objects', { method: 'POST', headers, body });
    t.match(published.json(), { status: 403, code: 'E2101' });
    const { base_version: _, ...fragment } = body;
    const validated = await rest.send('/osl/validate', { method: 'POST', headers, body: fragment });
    t.match(validated.json(), {
      ok: true,
      diff: { changes: [{ change: 'changed', kind: 'feature', name: 'subqueries', what: ['on'] }] },
    });
  });
});

/** A statement for each switch, which says what is off. */
const BY_SWITCH: Readonly<Record<Feature, readonly string[]>> = {
  set_operations: ['select id from customer union all select id from "order"'],
  subqueries: [
    'select id from customer where id in (select customer_id from "order")',
    "select id from traverse(anchor => 'order', target => 'product', keys => (select id from \"order\"))",
  ],
  derived_tables: [
    'select x.id from (select id from customer) x',
    'with x as (select id from customer) select id from x',
    'with recursive x (n) as (select 1 union all select n + 1 from x where n < 3) select n from x',
    'select c.id from customer c cross join lateral (select c.id + 1 as n) x',
    'select v.n from (values (1), (2)) v (n)',
  ],
  window_functions: ['select id, row_number() over (order by id) from customer'],
  row_functions: [
    'select n from generate_series(1, 3) n',
    'select id, generate_series(1, 2) from customer',
    'select s.id from sample s, unnest(s.numbers) n',
  ],
  several_searches: [
    "select a.text from retrieve(facet => 'labels', query => 'tea', top_k => 1) a join retrieve(facet => 'labels', query => 'salt', top_k => 1) b on a.id = b.id",
  ],
  operators_over_rows: ["select id, classify(label, array['tea', 'salt']) from product"],
};

test('each switch by its name, the grammar of the contract with all of them off', async (t) => {
  const all = Object.keys(FEATURES).map((name) => `${name}: false`);
  const strict = await startRest({
    manifest: `${SHOP_MANIFEST}features: { ${all.join(', ')} }\n`,
    embedded: true,
  });
  t.teardown(() => strict.close());
  for (const [name, texts] of Object.entries(BY_SWITCH))
    for (const osql of texts) {
      const reply = await strict.ask('user:ann', { osql });
      const detail = new RegExp(`is switched off here, by \`features\\.${name}\` of the manifest$`);
      t.match(reply.json(), { status: 400, code: 'E0511', detail, hint: /./ }, osql);
    }
  for (const osql of [
    'select region, count(*) as n from customer where id > 0 group by region having count(*) > 0 order by 2 limit 3',
    'select distinct c.name, o.amount from customer c left join "order" o on o.customer_id = c.id order by 1, 2 limit 2',
    'select measure(revenue) as r from "order" o join line l on l.order_id = o.id',
    "select id from traverse(anchor => 'order', target => 'product', keys => ('1'))",
  ]) {
    t.equal((await strict.ask('user:ann', { osql })).status, 200, osql);
  }
  t.match((await strict.ask('user:ann', { metrics: ['revenue'] })).json(), {
    rows: [{}],
  });
});
