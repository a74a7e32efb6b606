import {
  type Access,
  attributePattern,
  bindPredicate,
  compile,
  forChain,
  isKeyLookup,
  ready,
} from 'osl-compiler';
import t from 'tap';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';

/** Of which statements no value can make another plan the better one. */

await ready();

function callerNamed(name: string): { readonly access: Access } {
  const found = CALLERS.get(name);
  if (found === undefined) throw new Error(`no caller ${name}`);
  return found;
}

function isKeyed(text: string, caller = 'owner'): boolean {
  return isKeyLookup(compile(text, { ...CATALOG, joins: 'any' }, callerNamed(caller).access).query);
}

const PRODUCT = "p.id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'";

const KEYED = [
  'select 1',
  'select name from customer where id = 1',
  'select name from customer where 1 = id',
  'select name from customer where id = $1',
  "select name from customer where id = 1 and region = 'eu' and name like 'A%'",
  'select name from customer where id = 1 and id = 2',
  'select name from customer where id = 1 + 1',
  'select count(*), max(name) from customer where id = 1',
  'select c.name, o.amount from "order" o join customer c on c.id = o.customer_id where o.id = 1',
  'select c.name, o.amount from customer c join "order" o on o.customer_id = c.id where o.id = 1',
  'select c.name, o.amount from "order" o left join customer c on c.id = o.customer_id where o.id = 1',
  `select t.tag_id from product p join product_tag t on t.product_id = p.id where ${PRODUCT} and t.tag_id = 2`,
  'select name from (select * from customer where id = 1) c order by 1 limit 3',
  'with c as (select * from customer where id = 1) select name from c',
  'select name from customer where id = 1 union all select name from customer where id = 2',
];

const NOT_KEYED = [
  'select name from customer',
  "select name from customer where region = 'eu'",
  'select name from customer where id > 1',
  'select name from customer where id in (1, 2)',
  'select name from customer where id = 1 or id = 2',
  'select name from customer where not id = 1',
  'select name from customer where id + 0 = 1',
  "select name from customer where id = case when region = 'eu' then 1 else 2 end",
  'select amount from "order" where customer_id = 1',
  'select c.name, o.amount from "order" o join customer c on c.id = o.customer_id where c.id = 1',
  // What a left join requires leaves out no row of its left side.
  'select c.name, o.amount from "order" o left join customer c on c.id = o.customer_id and o.id = 1',
  'select c.name, o.amount from customer c left join "order" o on o.customer_id = c.id where c.id = 1',
  'select c.name, o.amount from "order" o full join customer c on c.id = o.customer_id and o.id = 1',
  'select a.name from customer a join customer b on a.id = b.id',
  `select t.tag_id from product p join product_tag t on t.product_id = p.id where ${PRODUCT}`,
  'select name from (select * from customer) c where id = 1',
  'with c as (select * from customer) select name from c where id = 1',
  'select name from customer where id = 1 union all select name from customer',
  'select name from customer where id = 1 and exists (select 1 from "order" o where o.customer_id = customer.id)',
  'select name from customer c join generate_series(1, 100) as g (n) on true where c.id = 1',
  'select v.x from (values (1), (2)) as v (x)',
  'with recursive r (n) as (select 1 union all select n + 1 from r where n < 100) select max(n) from r',
];

t.test('each table by its whole primary key, from values or from a row that is found so', async (t) => {
  for (const text of KEYED) t.ok(isKeyed(text), text);
});

t.test('anything else is planned for its values', async (t) => {
  for (const text of NOT_KEYED) t.notOk(isKeyed(text), text);
});

t.test(
  'a row filter beside the key changes nothing; of a key it may be a part, where it has one value',
  async (t) => {
    for (const caller of ['regional', 'chain', 'masked'])
      t.ok(isKeyed('select name from customer where id = 1', caller), caller);
    t.notOk(isKeyed('select name from customer', 'regional'));
    const bridge = CATALOG.relations.get('product_tag');
    if (bridge === undefined) throw new Error('no bridge');
    const text = `select t.tag_id from product p join product_tag t on t.product_id = p.id where ${PRODUCT}`;
    for (const tags of [['1'], ['1', '2']]) {
      const filter = forChain(bindPredicate("tag_id = attribute('tag')", bridge), [
        attributePattern(new Map([['tag', tags]])),
      ]);
      const { access } = callerNamed('owner');
      const grants = (access.relations.get('product_tag')?.grants ?? []).map((g) => ({ ...g, filter }));
      const tagged = { ...access, relations: new Map(access.relations) };
      tagged.relations.set('product_tag', { grants, masks: new Map(), denied: new Set() });
      t.equal(
        isKeyLookup(compile(text, { ...CATALOG, joins: 'any' }, tagged).query),
        tags.length === 1,
        tags.join(),
      );
    }
  },
);
