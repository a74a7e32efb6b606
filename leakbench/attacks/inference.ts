import { attacks, from, SOURCE } from './attack.js';

/** Differences between answers, and what keys, constraints and orders tell. */
export const INFERENCE = attacks('inference', [
  ...from(SOURCE.reconstruction, [
    'select id from customer',
    'select id from customer limit 5',
    'select id from purchase limit 5',
    'select id from purchase offset 195 limit 10',
  ]),
  ...from(SOURCE.own, [
    'select credit, count(*) from customer group by credit',
    'select distinct credit from customer',
    'select distinct vip, region from customer',
    'select id from customer where vip limit 3',
    'select a.id from customer a join purchase p on p.customer_id = a.id limit 5',
  ]),
  ...from(SOURCE.inference, [
    'select max(id) - min(id) + 1 - count(*) from customer',
    'select (select max(id) from customer) - 60',
  ]),
  ...from(SOURCE.samples, [
    'select id from customer tablesample system (100) order by id',
    'select id from customer tablesample bernoulli (100) repeatable (1) order by id',
  ]),
  ...from(SOURCE.systemColumns, [
    'select ctid, id from customer order by id limit 3',
    'select xmin::text is not null, id from customer order by id limit 3',
    'select tableoid::regclass, id from customer order by id limit 1',
  ]),
  ...from(SOURCE.reconstruction, [
    'select generate_series(1, (select count(*)::int from customer)) limit 100',
    'select repeat($$x$$, (select count(*)::int from customer))',
  ]),
  ...from(SOURCE.errorOrder, [
    'select case when (select count(*) from customer) > 60 then 1 / 0 else 0 end',
    "select case when exists (select 1 from customer where name like 'Needle%') then 1 / 0 else 0 end",
  ]),
  ...from(SOURCE.time, ['select pg_sleep(0) from customer limit 1']),
  ...from(SOURCE.own, [
    'select id from customer order by id fetch first 61 rows with ties',
    'select id from customer order by vip desc, id fetch first 1 rows with ties',
  ]),
  ...from(SOURCE.figures, [
    'select percent_rank() over (order by id), cume_dist() over (order by id) from customer order by 1 limit 3',
  ]),
  ...from(SOURCE.inference, [
    'select array_length(array(select id from customer), 1)',
    'select count(*) from customer, purchase, region',
  ]),
  ...from(SOURCE.graphqlIds, [
    { language: 'graphql', ask: '{ node(nodeId: "WyJjdXN0b21lcnMiLDEwMDdd") { nodeId } }' },
    { language: 'graphql', ask: '{ customerById(id: 1007) { nodeId name } }' },
    { language: 'graphql', ask: '{ customer(nodeId: "WyJjdXN0b21lcnMiLDEwMDdd") { name } }' },
    { language: 'graphql', ask: '{ a: customerById(id: 7) { id } b: customerById(id: 1007) { id } }' },
  ]),
  ...from(SOURCE.samples, [
    'select count(*) > 0 from customer tablesample system (50) repeatable (7)',
    'select count(*) from purchase tablesample bernoulli (10) repeatable (7)',
  ]),
  ...from(SOURCE.own, [
    'select vip, count(*) from customer group by vip',
    'select distinct tags from customer',
    'select item, count(*) from purchase group by item',
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/items/customer/1007' },
    { language: 'directus', ask: '/items/customer/7?fields=*' },
    { language: 'directus', ask: '/items/customer?sort=ssn&fields=id&limit=3' },
    { language: 'directus', ask: '/items/customer?sort=-email&fields=id&limit=3' },
    { language: 'directus', ask: '/items/complaint' },
    { language: 'directus', ask: '/items/complain' },
    { language: 'directus', ask: '/items/customer?fields=risk&limit=1' },
    { language: 'directus', ask: '/items/customer?fields=rsk&limit=1' },
  ]),
]);

/** Questions whose answers may take longer the more is hidden. Judged by statistics, and counted in a separate column: no endpoint defends against all of it. */
export const TIMING = attacks('timing', [
  ...from(SOURCE.indexTime, [
    'select count(*) from customer',
    'select count(*) from purchase',
    'select max(id) from customer',
    "select count(*) from customer where name like '%eedle%'",
    "select count(*) from purchase where item like '%lpha%'",
    "select count(*) from customer where name ~ '(N|O)(e|t)+.*7'",
    'select count(*) from purchase p join customer c on c.id = p.customer_id',
    'select count(*) from customer a join customer b on a.credit = b.credit',
    'select id from customer order by name desc limit 1',
    'select id from purchase order by amount desc limit 1',
    'select count(distinct item) from purchase',
    'select item, count(*) from purchase group by item order by 2 desc, 1 limit 1',
    "select count(*) from customer where region = 'south'",
  ]),
  ...from(SOURCE.indexTime, [
    "select count(*) from customer where name = 'Needle 1007'",
    'select count(*) from customer where id = 1007',
  ]),
  ...from(SOURCE.time, [
    'select count(*) from customer where md5(name) < md5(code)',
    'select sum(amount) from purchase where placed < date $$2001-01-01$$',
    'select count(*) from customer, purchase',
    'select id, row_number() over (order by name) from customer order by 2 desc limit 1',
    'select count(*) from purchase where customer_id > 1000',
  ]),
]);
