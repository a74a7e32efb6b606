import {
  type Access,
  bindPredicate,
  type Catalog,
  compile,
  emit,
  type GovernedPlan,
  type RelationAccess,
} from 'osl-compiler';
import t from 'tap';
import { accessWith, CATALOG as BENCH } from '../../../bench/barrier/data.js';
import { CATALOG } from '../golden/catalog.js';
import { openEngine } from '../golden/engine.js';
import { emitUngoverned } from './internals.js';
import { withoutBarrier } from './no-barrier.js';

/**
 * The barrier of design §5: a predicate that can fail must not run on rows that the row filter hides, for its
 * failure would tell what is in them.
 */
const engine = await openEngine(['shop']);
t.teardown(() => engine.close());
// Amounts of 57 are all hidden. The filter is dear, so that the planner would rather run the caller's predicate.
await engine.setUp(`create table shop.orders (id int4, customer_id int4, placed timestamptz, shipped timestamp,
    amount numeric, status text, note text, region text);
  insert into shop.orders select i, i, now(), now(), case when i % 2 = 0 then 57 else 1000 + i end, 'open', null,
    case when i % 2 = 0 then 'us' else 'eu' end from generate_series(1, 200) i;
  create index on shop.orders (amount);
  create table shop.customers (id int4, name text, email text, phone text, ssn text, tax_no text, born date,
    joined timestamptz, score numeric, vip bool, region_code text, profile jsonb, labels text[]);
  insert into shop.customers (id, born, vip, region_code) values
    (1, '1980-02-03', true, 'eu'), (2, '300000-01-01', false, 'us');
  analyze shop.orders`);

const order = CATALOG.relations.get('order');
const customer = CATALOG.relations.get('customer');
if (order === undefined || customer === undefined) throw new Error('the shop has no orders');

/** With joins on any condition. */
const FREE: Catalog = { ...CATALOG, joins: 'any' };

const DEAR = "lower(upper(lower(upper(lower(upper(region)))))) = 'eu'";

function accessTo(rights: Partial<RelationAccess> = {}): Access {
  const granted = (relation: typeof order, filter: string): RelationAccess => ({
    grants: [
      {
        id: 'g',
        columns: new Set(relation?.columns.map((c) => c.name)),
        unmask: new Set(),
        filter: relation === undefined ? null : bindPredicate(filter, relation),
      },
    ],
    masks: new Map([['birth', 'year']]),
    denied: new Set(),
    ...rights,
  });
  const relations = new Map([
    ['order', granted(order, DEAR)],
    ['customer', granted(customer, DEAR)],
  ]);
  return { signature: 's', policyVersion: 'p', chainLength: 1, relations };
}

/** The plan's SQL with every guard and fence taken away. */
function unguarded(plan: GovernedPlan) {
  return emitUngoverned(withoutBarrier(plan.query), plan.slots);
}

const values = (slots: ReturnType<typeof emit>['slots']) =>
  slots.map((s) => (s.kind === 'literal' && typeof s.value === 'string' ? s.value : null));

const GUARD = /case when \(?r\d+\.("#shown"|c\d+)/;

const LEAKS: readonly (readonly [string, string])[] = [
  ['a division', 'select id from "order" where 1 / (amount - 57) > 0'],
  ['a cast', "select id from \"order\" where (case when amount = 57 then 'x' else '1' end)::int4 = 1"],
  ['through a derived table', 'select x from (select 1 / (amount - 57) as x from "order") d where x > 0'],
  [
    'through a common table',
    'with w as (select 1 / (amount - 57) as x from "order") select x from w where x > 0',
  ],
  ['a group key', 'select amount from "order" group by amount having 1 / (amount - 57) > 0'],
  ['a mask that fails', "select id from customer where born > '1970-01-01'"],
];

for (const [name, question] of LEAKS) {
  t.test(`${name} tells of hidden rows without the guard, and not with it`, async (t) => {
    const plan = compile(question, CATALOG, accessTo());
    const { sql, slots } = emit(plan);
    t.match(sql, GUARD, 'it is guarded');
    t.notMatch(sql, 'offset 0', 'without a fence');
    t.equal((await engine.ask(sql, values(slots))).sqlstate, null);
    const open = unguarded(plan);
    t.match(
      (await engine.ask(open.sql, values(open.slots))).sqlstate,
      /^22/,
      'the same without the guard fails',
    );
  });
}

t.test('a key that is hidden and one that is not there are the same, whatever fails beside it', async (t) => {
  const beside = [
    'amount > 1 / (id - id)',
    "placed > now() - interval '1 day' * 1e300::float8",
    'id > 1 / (1 - 1)',
    'exists (select 1 from customer c where c.id = o.id and 1 / (c.id - c.id) > 0)',
    'exists (select 1 / (o.id - o.id) from customer c)',
    '(select 1 / (max(c.id) - max(c.id)) from customer c) > o.id',
  ];
  for (const predicate of beside) {
    const states = [];
    for (const id of [2, 1000]) {
      const text = `select amount from "order" o where id = ${id} and ${predicate}`;
      const { sql, slots } = emit(compile(text, FREE, accessTo()));
      t.match(sql, GUARD, predicate);
      states.push((await engine.ask(sql, values(slots))).sqlstate);
    }
    t.equal(states[0], states[1], predicate);
  }
});

t.test('a harmless predicate stays bare beside one that is asked about', async (t) => {
  const plan = compile('select id from "order" where id = 5 and lower(region) = \'x\'', CATALOG, accessTo());
  t.match(emit(plan).sql, /as r1 where \(r1\.id = \$\d+::int4\) and case when r1\."#shown" then/);
});

t.test('a change of case is bare where the type of the column limits its length', async (t) => {
  const sql = (column: string): string =>
    emit(compile(`select id from sight where lower(${column}) = 'x'`, BENCH, accessWith("region = 'eu'")))
      .sql;
  t.notMatch(sql('tag'), GUARD, 'varchar(20)');
  t.match(sql('region'), GUARD, 'text');
  const derived = `select id from (select id, tag from sight union all select id, region from sight) s where lower(tag) = 'x'`;
  t.match(
    emit(compile(derived, BENCH, accessWith("region = 'eu'"))).sql,
    GUARD,
    'one of two sources is a text',
  );
});

t.test('an equality of two tables that can fail keeps its form, and fences both', async (t) => {
  const text = 'select a.id from shop.orders a join shop.customers c on a.id = 1 / (c.id - 7) where a.id = 5';
  const plan = compile(text, CATALOG, accessTo(), { world: 'physical' });
  const { sql } = emit(plan);
  t.equal(sql.match(/ offset 0\)/g)?.length, 2);
  t.match(sql, /t\.id = \$\d+::int4\) offset 0/, 'what is harmless goes in beside the filter');
});
