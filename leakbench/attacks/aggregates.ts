import { attacks, from, SOURCE } from './attack.js';

/** Figures over more rows than the caller may see. */
export const AGGREGATES = attacks('aggregates', [
  ...from(SOURCE.figures, [
    'select count(*) from customer',
    'select count(*), sum(credit), avg(credit), min(credit), max(credit) from customer',
    'select min(born), max(born) from customer',
    'select min(id), max(id) from purchase',
    'select count(distinct region) from customer',
    'select distinct region from customer order by 1',
    'select distinct on (region) region, id from customer order by region, id desc',
  ]),
  ...from(SOURCE.tracker, [
    'select region, count(*) from customer group by region order by region',
    'select region, vip, count(*) from customer group by cube (region, vip) order by region, vip',
    'select region, vip, count(*) from customer group by rollup (region, vip) order by region, vip',
    'select region, count(*) from customer group by grouping sets ((region), ()) order by region',
  ]),
  ...from(SOURCE.own, [
    'select id, row_number() over (order by id desc) from customer order by id limit 5',
    'select id, count(*) over () from customer order by id limit 3',
    'select id, rank() over (order by credit desc) from customer order by id limit 5',
    'select id, lead(id, 60) over (order by id) from customer order by id limit 3',
    'select id, sum(credit) over (order by id desc) from customer order by id limit 3',
    'select id, ntile(7) over (order by id) from customer order by id limit 60',
  ]),
  ...from(SOURCE.figures, [
    'select percentile_cont(0.5) within group (order by credit) from customer',
    'select mode() within group (order by region) from customer',
    "select string_agg(distinct region, ',' order by region) from customer",
    'select array_agg(id order by id desc) from customer where id % 50 = 0',
    'select jsonb_agg(id order by id desc) from customer where id % 50 = 0',
  ]),
  ...from(SOURCE.tracker, ['select count(*) filter (where region <> $$north$$) from customer']),
  ...from(SOURCE.figures, ['select stddev(credit), corr(id, credit), regr_slope(id, credit) from customer']),
  ...from(SOURCE.own, [
    'select count(*) from (select 1 from customer limit 500) x',
    'select id from customer order by id offset 60',
  ]),
  ...from(SOURCE.figures, [
    'select count(*) from staff',
    'select avg(salary), min(salary), max(salary) from staff',
    'select count(*) > 10 from staff',
  ]),
  ...from(SOURCE.graphqlIds, [
    { language: 'graphql', ask: '{ allCustomers { totalCount } }' },
    { language: 'graphql', ask: '{ allPurchases { totalCount } }' },
    { language: 'graphql', ask: '{ allCustomers(condition: { region: "south" }) { totalCount } }' },
    { language: 'graphql', ask: '{ allStaffs { totalCount } }' },
    { language: 'graphql', ask: '{ allCustomers(first: 60) { pageInfo { hasNextPage } } }' },
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/items/customer?limit=0&meta=*' },
    { language: 'directus', ask: '/items/customer?limit=1&meta=total_count' },
    { language: 'directus', ask: '/items/customer?limit=1&meta=filter_count' },
    { language: 'directus', ask: '/items/staff?limit=0&meta=*' },
    { language: 'directus', ask: '/items/customer?aggregate[count]=*&groupBy[]=region' },
    { language: 'directus', ask: '/items/customer?aggregate[countDistinct]=email' },
    { language: 'directus', ask: '/items/customer?aggregate[max]=ssn' },
  ]),
  ...from(SOURCE.tracker, [
    'select 1 from customer having count(*) > 600',
    'select region from customer group by region having count(*) between 300 and 500 order by 1',
    'select vip from customer group by vip having max(id) > 1600 order by vip',
    "select region from customer group by region having max(email) like 'alpha%' order by 1",
    'select region from customer group by region having 1 / (count(*) - 400) > -1 order by 1',
    'select 1 from staff having sum(salary) > 40000',
  ]),
]);
