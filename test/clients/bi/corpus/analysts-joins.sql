-- tool: analysts: joins, sets, hierarchies (analysts, simple)
-- data: orders with customers
select o.id, c.name, o.amount from "order" o join customer c on c.id = o.customer_id where o.status = 'paid' order by o.id;

-- data: joins by USING after renaming
select label, sum(pieces) as n from line join (select id as product_id, label from product) p using (product_id) group by label order by 1;

-- data: NATURAL JOIN of CTEs
with a as (select customer_id, count(*) as orders from "order" group by 1), b as (select customer_id, count(*) as events from event group by 1)
select customer_id, orders, events from a natural join b order by 1;

-- data: LEFT JOIN with a condition on the right
select c.id, count(o.id) as returned from customer c left join "order" o on o.customer_id = c.id and o.status = 'returned' group by c.id order by c.id;

-- data: anti join by IS NULL
select c.id from customer c left join event e on e.customer_id = c.id and e.kind = 'buy' where e.id is null order by 1;

-- data: RIGHT JOIN
select p.label, l.order_id from line l right join product p on p.id = l.product_id and l.pieces > 4 order by 1, 2 nulls last limit 20;

-- data: FULL OUTER JOIN of two aggregates
select coalesce(a.day, b.day) as day, a.n as orders, b.n as events
from (select placed_at::date as day, count(*) as n from "order" group by 1) a full outer join (select at::date as day, count(*) as n from event group by 1) b on a.day = b.day order by 1;

-- data: FULL JOIN USING
with x as (select customer_id, sum(amount) as s from "order" where status = 'new' group by 1), y as (select customer_id, sum(amount) as r from "order" where status = 'returned' group by 1)
select customer_id, s, r from x full join y using (customer_id) order by 1;

-- data: join on an inequality
select a.id, count(b.id) as cheaper from product a left join product b on b.price < a.price group by a.id order by a.id;

-- data: join on a band of values
select o.id, b.label from "order" o join (values ('low', 0, 50), ('mid', 50, 150), ('high', 150, 1000)) as b(label, lo, hi) on o.amount >= b.lo and o.amount < b.hi order by o.id limit 30;

-- data: join on a function of a key
select c.id, e.id as employee from customer c join employee e on lower(c.name) = lower(e.name) order by 1, 2;

-- data: join on region, no key
select c.name, s.plan from customer c join subscription s on s.region = c.region where c.id < 4 order by 1, 2 limit 20;

-- data: join on two columns
select o.id, s.id as sub from "order" o join subscription s on s.customer_id = o.customer_id and s.region = o.region and o.placed_at::date between s.started and coalesce(s.ended, date '2099-01-01') order by 1, 2 limit 30;

-- data: four tables
select ca.name, sum(l.pieces * l.price) as revenue from category ca join product p on p.category_id = ca.id join line l on l.product_id = p.id join "order" o on o.id = l.order_id where o.status <> 'returned' group by ca.name order by 2 desc, 1;

-- data: comma joins
select ca.name, p.label from category ca, product p where p.category_id = ca.id order by 1, 2;

-- data: self join of a hierarchy
select e.name, m.name as manager from employee e left join employee m on m.id = e.manager_id order by e.id;

-- data: paid more than the manager
select e.name from employee e join employee m on e.manager_id = m.id where e.salary > m.salary order by 1;

-- data: recursive org chart
with recursive chain as (
  select id, name, manager_id, 1 as depth, name as path from employee where manager_id is null
  union all
  select e.id, e.name, e.manager_id, c.depth + 1, c.path || ' > ' || e.name from employee e join chain c on e.manager_id = c.id)
select id, depth, path from chain order by path;

-- data: recursive category tree with roll-up
with recursive tree as (select id, id as root from category union all select c.id, t.root from category c join tree t on c.parent_id = t.id)
select t.root, count(p.id) as products from tree t left join product p on p.category_id = t.id group by 1 order by 1;

-- data: recursive numbers
with recursive n(i) as (select 1 union all select i + 1 from n where i < 10) select i from n order by i;

-- data: recursive dates
with recursive d as (select date '2025-11-01' as day union all select day + 1 from d where day < date '2025-11-05') select day from d order by day;

-- data: cross join of small sets
select r.region, s.status, (select count(*) from "order" o where o.region = r.region and o.status = s.status) as n
from (select distinct region from "order") r cross join (select distinct status from "order") s order by 1, 2;

-- data: scalar subqueries in the select list
select c.id, (select count(*) from "order" o where o.customer_id = c.id) as orders, (select max(at) from event e where e.customer_id = c.id) as last_seen from customer c order by c.id;

-- data: a correlated comparison
select o.id, o.amount from "order" o where o.amount > (select avg(i.amount) from "order" i where i.customer_id = o.customer_id) order by o.id;

-- data: IN and NOT IN with subqueries
select id from product where id in (select product_id from line where pieces > 3) and id not in (select product_id from line where order_id = 1) order by 1;

-- data: > ALL and = ANY of subqueries
select id from "order" where amount >= all (select amount from "order" where status = 'paid') or id = any (select order_id from line where pieces = 5 and order_id < 9) order by 1;

-- data: row IN subquery
select id from "order" where (customer_id, placed_at) in (select customer_id, max(placed_at) from "order" group by customer_id) order by id;

-- data: row comparison for paging
select id, amount from "order" where (amount, id) > (100, 50) order by amount, id limit 10;

-- data: EXISTS in the select list
select c.id, exists (select 1 from subscription s where s.customer_id = c.id and s.ended is null) as subscribed from customer c order by 1;

-- data: UNION of different sources
select 'customer' as kind, name from customer union select 'employee', name from employee order by 1, 2;

-- data: UNION ALL wrapped and grouped
select src, count(*) from (select 'o' as src, customer_id from "order" union all select 'e', customer_id from event) u group by src order by src;

-- data: EXCEPT ALL and INTERSECT ALL
(select status from "order" where id < 20 except all select status from "order" where id < 6) intersect all select status from "order" order by 1;

-- data: VALUES list joined
select v.code, count(o.id) from (values ('new', 1), ('paid', 2), ('lost', 3)) as v(code, rank) left join "order" o on o.status = v.code group by v.code, v.rank order by v.rank;

-- data: VALUES alone
values (1, 'one'), (2, 'two');

-- data: CTE used twice
with s as (select region, sum(amount) as total from "order" group by 1) select a.region, b.region as other, a.total - b.total as diff from s a join s b on a.region < b.region order by 1, 2;

-- data: materialized CTE
with big as materialized (select * from "order" where amount > 200), small as not materialized (select * from "order" where amount < 20) select (select count(*) from big) as b, (select count(*) from small) as s;

-- data: nested CTEs
with a as (with b as (select 1 as x union all select 2) select x * 10 as y from b) select sum(y) from a;

-- data: LATERAL top two per row
select c.id, t.id as order_id, t.amount from customer c cross join lateral (select o.id, o.amount from "order" o where o.customer_id = c.id order by o.amount desc, o.id limit 2) t order by 1, 3 desc;

-- data: LATERAL expression reuse
select o.id, x.net, x.net * 0.19 as tax from "order" o, lateral (select o.amount * (1 - coalesce(o.discount, 0))::numeric as net) x order by o.id limit 10;

-- data: join payments and orders with totals
select o.status, count(p.id) as payments, sum(o.amount) as ordered, sum(p.paid) as paid, sum(o.amount) - coalesce(sum(p.paid), 0) as open from "order" o left join payment p on p.order_id = o.id group by o.status order by 1;

-- data: duplicates
select customer_id, plan, count(*) from subscription group by 1, 2 having count(*) > 1 order by 1, 2;

-- data: DISTINCT of expressions with ORDER BY
select distinct upper(status) as s, region from "order" order by s, region desc;

-- data: boolean columns and CASE
select active, count(*), sum(case when active then salary end) as s from employee where active is not null group by active order by active;

-- data: whole row counted
select count(c) as rows, count(*) from customer c;

-- data: IS NOT DISTINCT FROM in a join
select a.id, b.id as same from employee a join employee b on a.salary is not distinct from b.salary and a.id < b.id order by 1, 2;

-- data: ORDER BY CASE
select id, status from "order" where id < 20 order by case status when 'new' then 1 when 'paid' then 2 else 3 end, id;

-- data: ORDER BY an expression not selected, NULLS FIRST
select id from product order by coalesce(price, 0) * 2 desc nulls first, label;

-- data: parenthesised joins
select c.name, p.method from customer c left join ("order" o join payment p on p.order_id = o.id) on o.customer_id = c.id and p.method = 'cash' order by 1, 2 nulls last limit 25;

-- data: alias of columns on a relation
select x.a, x.b from (select id, name from category) as x(a, b) order by 1;

-- data: column aliases on a table
select t.k, t.l from category as t(k, p, l) order by 1;

-- data: quoted names and blanks
select o."amount" as "Total Amount", o.region as "Region (short)" from "entities"."order" as "o" order by o."id" limit 3;

-- data: only literals
select 1 as one, 'a' as text, null as nothing, true as yes, 1.5 as num, date '2026-01-01' as d, array[1, 2] as arr, 1e3 as f;

-- data: arithmetic
select 7 / 2 as i, 7 % 3 as m, 7 / 2.0 as n, 2 ^ 10 as p, |/ 16.0 as r, @ -3 as a, 5 & 3 as b, 1 << 4 as s, round(2.5) as r1, round(-2.345, 2) as r2, trunc(2.99) as t, ceil(1.2) as c, mod(10, 3) as md, div(7, 2) as dv, sign(-3) as sg, pi() as pi;

-- data: casts
select '12'::int, 1::text, '1.239'::numeric(4, 2), 'abc'::varchar(2), cast(1.7 as integer), true::int, 0::boolean, '{1,2}'::int[], '2026-01-01'::timestamp;

-- data: nested CASE and COALESCE
select id, case when discount is null then 'none' else case when discount > 0.2 then 'big' else 'small' end end as d, coalesce(note, status, '-') as n, nullif(status, 'new') as s from "order" order by id limit 12;

-- data: a subquery in FROM without alias columns
select avg(n)::numeric(10, 2) from (select count(*) as n from "order" group by customer_id) as per_customer;

-- data: a CTE that shadows a table
with "order" as (select * from entities."order" where status = 'paid') select count(*) from "order";

-- data: SELECT DISTINCT with window
select distinct region, count(*) over (partition by region) as n from "order" order by 1;

-- data: an aggregate over a union of CTEs with LIMIT each
(select id, amount from "order" order by amount desc limit 3) union all (select id, amount from "order" order by amount limit 3) order by 2, 1;

-- data: empty GROUP BY sets
select count(*) from "order" group by ();

-- data: offset of a scalar subquery
select (select amount from "order" order by amount desc offset 1 limit 1) as second_highest;

-- data: a table function joined by key
select g.id, c.name from generate_series(1, 12) as g(id) left join customer c on c.id = g.id order by 1;
