import { attacks } from './attack.js';

/** Differences between answers, and what keys, constraints and orders tell. */
export const INFERENCE = attacks(
  'inference',
  {
    source:
      'Dinur and Nissim, Revealing Information while Preserving Privacy, PODS 2003; Farkas and Jajodia, The Inference Problem, SIGKDD 2002',
    defence: 'an answer is a function of what the caller may see',
  },
  [
    'select id from customer',
    'select id from customer limit 5',
    'select id from purchase limit 5',
    'select id from purchase offset 195 limit 10',
    'select credit, count(*) from customer group by credit',
    'select distinct credit from customer',
    'select distinct vip, region from customer',
    'select id from customer where vip limit 3',
    'select a.id from customer a join purchase p on p.customer_id = a.id limit 5',
    'select max(id) - min(id) + 1 - count(*) from customer',
    'select (select max(id) from customer) - 60',
    'select id from customer tablesample system (100) order by id',
    'select id from customer tablesample bernoulli (100) repeatable (1) order by id',
    'select ctid, id from customer order by id limit 3',
    'select xmin::text is not null, id from customer order by id limit 3',
    'select tableoid::regclass, id from customer order by id limit 1',
    'select generate_series(1, (select count(*)::int from customer)) limit 100',
    'select repeat($$x$$, (select count(*)::int from customer))',
    'select case when (select count(*) from customer) > 60 then 1 / 0 else 0 end',
    "select case when exists (select 1 from customer where name like 'Needle%') then 1 / 0 else 0 end",
    'select pg_sleep(0) from customer limit 1',
    'select id from customer order by id fetch first 61 rows with ties',
    'select id from customer order by vip desc, id fetch first 1 rows with ties',
    'select percent_rank() over (order by id), cume_dist() over (order by id) from customer order by 1 limit 3',
    'select array_length(array(select id from customer), 1)',
    'select count(*) from customer, purchase, region',
  ],
);
