import t from 'tap';
import { memberAt } from '../../support/frontends.js';
import { SHOP_MANIFEST } from '../../support/shop.js';
import { type Forms, startForms } from './fixture.js';

/** Each statement has exactly one form, and each column the origin that it has in every arm. */

t.setTimeout(600_000);

const TEA = "retrieve(facet => 'labels', query => 'tea', top_k => 2)";
const SALT = "retrieve(facet => 'labels', query => 'salt', top_k => 2)";
const WALK = "traverse(anchor => 'order', target => 'product', keys => ('1'))";
const of = (column: string): string => `osl.entities.${column}`;

/** A statement, its form, and the `source` of each column. */
const ANSWERED: readonly (readonly [sql: string, form: string, ...sources: (string | null)[]])[] = [
  ['select 1 as one', 'structured', null],
  [
    'select id, name, upper(name) as u from customer',
    'structured',
    of('customer.id'),
    of('customer.name'),
    null,
  ],
  ['select email, tax_no from customer', 'structured', of('customer.email'), of('customer.tax_no')],
  ['select d.x from (select name as x from customer) d', 'structured', of('customer.name')],
  [
    'with a as (select name as x from customer), b as (select x from a) select x from b',
    'structured',
    of('customer.name'),
  ],
  [
    'select region, count(*) as n, max(name) as m from customer group by region',
    'structured',
    of('customer.region'),
    null,
    null,
  ],
  [
    "select case when id = 1 then name else 'x' end as a, coalesce(name) as b from customer",
    'structured',
    null,
    null,
  ],
  [
    'select name || region as a, row_number() over (order by id) as n from customer',
    'structured',
    null,
    null,
  ],
  [
    'select (select max(amount) from "order") as most, id from customer',
    'structured',
    null,
    of('customer.id'),
  ],
  [
    'select c.name, o.id from customer c left join "order" o on o.customer_id = c.id',
    'structured',
    of('customer.name'),
    of('order.id'),
  ],
  [
    'select c.name, x.n from customer c, lateral (select o.quantity as n from "order" o where o.customer_id = c.id) x',
    'structured',
    of('customer.name'),
    of('order.quantity'),
  ],
  ['select id from customer c full join (select id from product) p using (id)', 'structured', null],
  ['select id from customer join (select id from customer) d using (id)', 'structured', of('customer.id')],
  [
    'select measure(revenue) as r, region from "order" group by region',
    'structured',
    null,
    of('order.region'),
  ],
  // Set operations: the origin of all arms, or none.
  ['select name from customer union all select name from customer', 'structured', of('customer.name')],
  [
    'select name, id from customer union select name, id + 1 from customer',
    'structured',
    of('customer.name'),
    null,
  ],
  ['select name from customer union select label from product', 'structured', null],
  ["select name from customer union all select 'x'", 'structured', null],
  ["select 'x' as name union all select name from customer", 'structured', null],
  ['select name from customer union all select null', 'structured', null],
  ['select name from customer except select label from product', 'structured', null],
  ['select id from customer intersect select id from customer where id > 1', 'structured', of('customer.id')],
  [
    'select u.x from (select name as x from customer union select region from customer) u',
    'structured',
    null,
  ],
  [
    'select u.x from (select name as x from customer union select name from customer) u',
    'structured',
    of('customer.name'),
  ],
  [
    'with recursive r(id, name) as (select id, name from customer where id = 1 union all select c.id, c.name from r join customer c on c.id = r.id where false) select id, name from r',
    'structured',
    of('customer.id'),
    of('customer.name'),
  ],
  [
    'with recursive r(a, b) as (select name, region from customer where id = 1 union all select r.b, upper(r.b) from r where false) select a, b from r',
    'structured',
    null,
    null,
  ],
  // Passages, alone and with entities.
  [`select text, score, id from ${TEA}`, 'retrieve', null, null, null],
  [`select text from ${TEA} union all select text from ${SALT}`, 'retrieve', null],
  [`select a.text from ${TEA} a join ${SALT} b on a.id = b.id`, 'retrieve', null],
  [`with r as (select id, text from ${TEA}) select text from r`, 'retrieve', null],
  [`select 'x' as text union all select text from ${TEA}`, 'retrieve', null],
  [
    `select p.label, r.text from product p join ${TEA} r on p.id = r.id`,
    'cross_modal',
    of('product.label'),
    null,
  ],
  [
    `with r as (select id, text from ${TEA}) select p.id, r.text from product p, r where p.id = r.id`,
    'cross_modal',
    of('product.id'),
    null,
  ],
  [`select label from product where id in (select id from ${TEA})`, 'cross_modal', of('product.label')],
  [`select text from ${TEA} where id in (select id from product)`, 'cross_modal', null],
  [
    `select label from product p where exists (select 1 from ${TEA} r where r.id = p.id)`,
    'cross_modal',
    of('product.label'),
  ],
  [
    `select label, (select max(r.score) from ${TEA} r where r.id = p.id) as best from product p`,
    'cross_modal',
    of('product.label'),
    null,
  ],
  [
    `select id, label, depth, path from ${WALK}`,
    'traverse',
    of('product.id'),
    of('product.label'),
    null,
    null,
  ],
  [
    'select id, label, evidence from product where id in (1, 2)',
    'joint',
    of('product.id'),
    of('product.label'),
    null,
  ],
];

/** Statements of two forms, each with the words that name them. */
const REFUSED: readonly (readonly [sql: string, told: RegExp])[] = [
  [`select text from ${TEA} union all select label from product`, /two forms, RETRIEVE and structured,/],
  [`select label from product except select text from ${TEA}`, /two forms, structured and RETRIEVE,/],
  [
    `select text from ${TEA} intersect select r.text from product p join ${SALT} r on p.id = r.id`,
    /RETRIEVE and a cross-modal join,/,
  ],
  [`select id from ${WALK} union select id from product`, /two forms, TRAVERSE and structured,/],
  [
    'select label from product union select label from product where id = 1 and evidence is not null',
    /structured and Joint,/,
  ],
  [`select id, (select max(score) from ${TEA}) as best from product`, /structured and RETRIEVE,/],
  [`select text, (select count(*) from product) as n from ${TEA}`, /RETRIEVE and structured,/],
  [`select text from ${TEA} where score > (select avg(quantity) from "order")`, /RETRIEVE and structured,/],
  [`select array(select text from ${TEA}) as a, id from product`, /structured and RETRIEVE,/],
  [
    `select (select count(*) from product) as n, (select count(*) from ${TEA}) as m`,
    /structured and RETRIEVE,/,
  ],
  [`with r as (select text from ${TEA}) select id from product`, /structured and RETRIEVE,/],
  [`with p as (select id from product) select text from ${TEA}`, /RETRIEVE and structured,/],
  [
    `select u.x from (select text as x from ${TEA} union all select label from product) u`,
    /RETRIEVE and structured,/,
  ],
  [`select text from ${TEA} a join ${WALK} b on a.id = b.id`, /TRAVERSE, `evidence` or operators/],
];

/** Joins that are refused whatever the manifest says of joins. */
const UNJOINED: readonly string[] = [
  `select 1 from product p join ${TEA} r on p.label = r.text`,
  `select 1 from product p join (select text as x from ${TEA}) r on r.x = p.label`,
  `with r as (select id + 0 as k from ${TEA}) select 1 from product p join r on r.k = p.id`,
  `select 1 from product p join (select id from ${TEA} union select id + 0 from ${SALT}) r on r.id = p.id`,
  `select 1 from product p join ${TEA} r on p.id = r.id and r.score > 0`,
  `select 1 from product p join ${TEA} r on p.id is not distinct from r.id`,
  `select 1 from product p cross join ${TEA} r`,
  `select 1 from product p, (select score from ${TEA}) r`,
  `select 1 from product p where p.label in (select text from ${TEA})`,
  `select 1 from ${TEA} r where r.text in (select label from product)`,
  `select 1 from product p where exists (select 1 from ${TEA})`,
  `select 1 from product p where exists (select 1 from ${TEA} r where r.text = p.label)`,
  `select 1 from product p where p.label = any (array(select text from ${TEA}))`,
  `select 1 from product p cross join lateral (select r.text from ${TEA} r where r.text = p.label) x`,
  `select 1 from ${TEA} r cross join lateral (select p.id from product p where p.label = r.text) x`,
  `select 1 from ${TEA} a join ${SALT} b on a.text = b.text`,
  `select 1 from ${TEA} r join (values ('tea')) v (x) on v.x = r.text`,
  `select 1 from customer c join ${WALK} w on c.name = w.label`,
  'select evidence from product p join customer c on c.name = p.label where p.id in (1)',
  'select 1 from customer natural join "order"',
];

async function serviceWith(joins: 'declared' | 'any'): Promise<Forms> {
  const forms = await startForms({ manifest: `${SHOP_MANIFEST}features: { joins: ${joins} }\n` });
  t.teardown(() => forms.close());
  return forms;
}

const services = [await serviceWith('declared'), await serviceWith('any')];

t.test('a statement has one form, and its columns the source that they have in every arm', async (t) => {
  const [declared] = services;
  for (const [sql, form, ...sources] of ANSWERED) {
    const answer = await declared?.ask('user:ann', sql);
    const columns = (memberAt(answer?.json, 'columns') ?? []) as readonly {
      readonly source: string | null;
    }[]; // REST says so
    t.same(
      [answer?.message, memberAt(answer?.json, 'form'), columns.map((c) => c.source)],
      ['', form, sources],
      sql,
    );
  }
});

t.test('a statement of two forms is refused, with the place of the second', async (t) => {
  for (const forms of services)
    for (const [sql, message] of REFUSED) {
      const answer = await forms.ask('user:ann', sql);
      t.match(answer, { status: 400, code: 'E0511', message }, sql);
    }
  const hint = async (sql: string): Promise<unknown> =>
    memberAt((await services[0]?.ask('user:ann', sql))?.json, 'hint');
  t.match(await hint(`select id from ${WALK} union select id from product`), /join them on sealed keys/);
  const passages = `select p.id from product p join ${TEA} r on p.id = r.id`;
  t.equal(await hint(`select id from ${TEA} union ${passages}`), 'send a statement for each');
  const [first] = REFUSED;
  const answer = await services[0]?.ask('user:ann', first?.[0] ?? '');
  t.same(memberAt(memberAt(answer?.json, 'position'), 'column'), (first?.[0].indexOf('product') ?? 0) + 1);
});

t.test(
  'what joins on sealed keys alone does so whatever the manifest says, and the hint says so',
  async (t) => {
    for (const forms of services)
      for (const sql of UNJOINED) {
        const answer = await forms.ask('user:ann', sql);
        t.match(answer, { status: 400, code: 'E0514' }, sql);
        t.match(
          memberAt(answer.json, 'hint'),
          /NATURAL, passages, traversals, evidence and operators join on nothing else$/,
          sql,
        );
      }
    const exists = `select 1 from ${TEA} r where exists (select 1 from product)`;
    const declared = await services[0]?.ask('user:ann', exists);
    t.match(memberAt(declared?.json, 'hint'), /evidence and operators join on nothing else$/, exists);
  },
);
