import { attacks, from, SOURCE } from './attack.js';

/** Joins that meet hidden rows: a filter that is lost on one side, and rows that an outer join completes. */
export const JOINS = attacks('joins', [
  ...from(SOURCE.eachRelation, [
    'select c.id, p.id from customer c join purchase p on p.customer_id = c.id order by c.id, p.id limit 10',
    'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id order by p.id desc limit 10',
    'select p.id, c.name from customer c right join purchase p on c.id = p.customer_id order by p.id desc limit 10',
    'select c.id, p.id from customer c full join purchase p on c.id = p.customer_id order by c.id desc nulls first, p.id desc limit 10',
    'select count(*) from customer c full join purchase p on c.id = p.customer_id',
    'select r.code, count(c.id) from region r left join customer c on c.region = r.code group by r.code order by r.code',
    'select r.code, count(p.id) from region r left join purchase p on p.region = r.code group by r.code order by r.code',
  ]),
  ...from(SOURCE.filters, [
    'select r.code from region r where not exists (select 1 from customer c where c.region = r.code) order by r.code',
    'select r.code from region r where exists (select 1 from customer c where c.region = r.code) order by r.code',
    'select r.code from region r where r.code in (select region from customer) order by r.code',
    'select r.code from region r where r.code not in (select region from customer) order by r.code',
  ]),
  ...from(SOURCE.eachRelation, [
    'select r.code, (select count(*) from customer c where c.region = r.code) as n from region r order by r.code',
    'select r.code, x.n from region r cross join lateral (select count(*) as n from customer c where c.region = r.code) x order by r.code',
    'select count(*) from customer a cross join customer b',
    'select a.id from customer a join customer b on a.id + 1000 = b.id order by a.id limit 5',
    'select a.id, b.id from customer a left join customer b on b.id = a.id + 1006 order by a.id limit 5',
    'select region from customer union select code from region order by 1',
    'select code from region except select region from customer order by 1',
    'select code from region intersect select region from customer order by 1',
    'select id from customer union all select customer_id from purchase order by 1 desc limit 5',
  ]),
  ...from(SOURCE.wholeRows, [
    'select * from customer natural join region order by id limit 3',
    'select c.id from customer c join purchase p using (id) order by c.id limit 5',
  ]),
  ...from(SOURCE.subqueries, [
    'with recursive t(n) as (select min(id) from customer union all select (select min(c.id) from customer c where c.id > t.n) from t where t.n is not null) select count(*), max(n) from t',
    'with x as (select * from customer) select count(*) from x where id > 1000',
  ]),
  ...from(SOURCE.cells, [
    'select count(*) from customer a join customer b on a.email = b.email',
    'select count(*) from customer a join customer b on a.email = b.name',
    'select a.id from customer a where a.email in (select b.email from customer b where b.id > 3) order by a.id limit 3',
  ]),
  ...from(SOURCE.subqueries, [
    'with x as materialized (select id, region from customer) select region, count(*) from x group by region order by region',
    'select count(*) from (select c.id from customer c union all select p.id from purchase p) x',
    'select count(*) from customer c where exists (select 1 from purchase p where p.customer_id = c.id and p.region <> c.region)',
    'select c.id from customer c where c.id = any (select p.customer_id from purchase p order by p.id desc limit 3) order by 1',
    'select c.id from customer c where c.id >= all (select p.customer_id from purchase p) order by 1',
  ]),
  ...from(SOURCE.graphqlIds, [
    {
      language: 'graphql',
      ask: '{ allPurchases(first: 5) { nodes { id customerByCustomerId { id name } } } }',
    },
    {
      language: 'graphql',
      ask: '{ allRegions { nodes { code customersByRegion { totalCount nodes { id } } } } }',
    },
    { language: 'graphql', ask: '{ purchaseById(id: 5007) { customerByCustomerId { id name } } }' },
    {
      language: 'graphql',
      ask: '{ regionByCode(code: "south") { customersByRegion(first: 3) { nodes { id purchasesByCustomerId { totalCount } } } } }',
    },
  ]),
  ...from(SOURCE.cells, [
    'select c.id from customer c join (values ($$alpha7@example.com$$)) v(email) on c.email = v.email order by 1',
    'select c.id from customer c join (values ($$alpha7@example.com$$)) v(email) using (email) order by 1',
    'select c.id from customer c where c.email in (select x from (values ($$alpha7@example.com$$)) v(x)) order by 1',
    'select v.n, c.id from (values (7, $$alpha7@example.com$$)) v(n, email) left join customer c on c.email = v.email order by 1, 2',
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/items/purchase?fields=id,customer_id.id,customer_id.name&limit=3' },
    { language: 'directus', ask: '/items/purchase?fields=id,customer_id.email&limit=3' },
    { language: 'directus', ask: '/items/customer?fields=id,region.label&limit=3' },
    { language: 'directus', ask: '/items/purchase?filter[customer_id][id][_eq]=1007&fields=id' },
  ]),
]);
