import { attacks, from, SOURCE } from './attack.js';

/** An expression that fails on a hidden row reveals that the row exists, and often its value. */
export const ERRORS = attacks('errors', [
  ...from(SOURCE.errorOrder, [
    'select id from customer where 1 / credit > 0 order by id',
    'select id from customer where code::int > 0 order by id',
    'select id from customer where 100 / (credit - 1007) > 0 order by id',
    "select id from customer where (name || '')::text::date is not null order by id",
    'select count(*) from customer where sqrt(credit - 5) >= 0',
    'select count(*) from customer where ln(credit) >= 0',
  ]),
  ...from(SOURCE.leakyViews, [
    'select max(1 / credit) from customer',
    'select sum(code::numeric) from customer',
    'select id from customer order by 1 / credit, id limit 3',
    'select id from customer order by code::int desc limit 3',
    'select credit, count(*) from customer group by credit having min(1 / credit) > 0 order by credit',
  ]),
  ...from(SOURCE.errorOrder, [
    "select id from customer where substring(name from 1 for (case when name like 'Needle%' then -1 else 1 end)) <> '' order by id",
    'select id from purchase where 1 / amount > 0 order by id limit 5',
    "select id from purchase where split_part(item, ' ', 2)::int >= 0 order by id limit 5",
  ]),
  ...from(SOURCE.eachRelation, [
    'select c.id from customer c join purchase p on 1 / p.amount > 0 and p.customer_id = c.id order by c.id limit 5',
  ]),
  ...from(SOURCE.errorValues, [
    "select id from customer where to_date(code, 'YYYYMMDD') is not null order by id",
  ]),
  ...from(SOURCE.errorOrder, [
    'select id from customer where power(10, id) > 0 order by id',
    'select id from customer where (id * 1000000) > 0 order by id',
  ]),
  ...from(SOURCE.errorValues, [
    "select id from customer where ('{' || code || '}')::int[] is not null order by id",
    "select id from customer where ('[' || code || ']')::jsonb is not null order by id",
  ]),
  ...from(SOURCE.own, [
    "select id from customer where name ~ ('(' || substring(code from 1 for 0) || case when code like 'S%' then '' else ')' end) order by id",
    'select id from customer where chr(id) is not null order by id',
    'select id from customer where repeat(name, id * 100000) is null order by id',
  ]),
  ...from(SOURCE.errorOrder, [
    'select id from customer where (case when vip then 1 / (extract(year from born)::int - 1900) else 1 end) is not null order by id',
  ]),
  ...from(SOURCE.cells, [
    "select id from customer where 1 / position('a' in email) > 0 order by id",
    "select id from customer order by length(email) / position('a' in email), id limit 3",
  ]),
  ...from(SOURCE.agentTools, [
    {
      language: 'mcp',
      ask: '{"name": "semantic_query", "arguments": {"osql": "select id from customer where 1 / credit > 0 order by id"}}',
    },
    {
      language: 'mcp',
      ask: '{"name": "semantic_query", "arguments": {"osql": "select risk from customer"}}',
    },
    {
      language: 'mcp',
      ask: '{"name": "semantic_explain", "arguments": {"osql": "select about from complaint"}}',
    },
    { language: 'mcp', ask: '{"name": "semantic_query", "arguments": {"osql": "select ssn from customer"}}' },
  ]),
  ...from(SOURCE.graphqlIds, [
    { language: 'graphql', ask: '{ allCustomers(first: 3) { nodes { id risk } } }' },
    { language: 'graphql', ask: '{ allComplaints(first: 3) { nodes { id } } }' },
    { language: 'graphql', ask: '{ allCustomers(condition: { ssn: "a-1007" }) { nodes { id } } }' },
  ]),
  ...from(SOURCE.errorOrder, [
    'select id from ticket where 100 / amount > 1 order by id',
    'select id from ticket where code::int > 0 order by id',
    "select id from ticket where 'x' like about order by id",
    'select count(*) from region r join ticket t on 100 / t.amount > 1',
    'select r.code, t.id from region r left join ticket t on 100 / t.amount > 10 order by r.code, t.id',
    'select amount from ticket group by amount having 100 / amount > 1 order by amount',
    'select count(*) from customer c where exists (select 1 from ticket t where 100 / t.amount > c.id)',
    'select count(*) from customer c where c.id in (select t.id from ticket t where 100 / t.amount > 1)',
    'select id from (select id, 100 / amount as n from ticket) x where n > 1 order by id',
    'with x as (select id, code::int as n from ticket) select id from x where n > 0 order by id',
    'select count(*) filter (where 100 / amount > 1) from ticket',
    'select id from ticket where case when amount = 0 then 1 / amount else 1 end = 1 order by id',
    'select id from ticket where coalesce(nullif(code, $$10$$), $$7$$)::int > 0 order by id',
    'select a.id from ticket a join ticket b on a.id = 100 / b.amount order by a.id',
    'select id from ticket where not (100 / amount = 7) order by id',
    'select id from ticket where (100 / amount) in (100, 50, 33) order by id',
    'select id from ticket where code::int between 1 and 100 order by id',
    'select id from ticket where amount = any (array[1, 2]) or 100 / amount > 90 order by id',
  ]),
]);
