-- tool: rows, subscripts and names of types (checks, simple)

-- data: a whole row
select c from customer c order by id

-- data: a whole row by the name of its table
select customer, id from customer order by id

-- data: whole rows of both sides
select c, o from customer c join "order" o on o.customer_id = c.id where o.id < 30 order by o.id

-- data: a whole row that an outer join has not
select c.id, s from customer c left join subscription s on s.customer_id = c.id and s.plan = 'pro' order by c.id, s.id

-- data: a whole row of every type
select s from sample s order by id

-- data: a whole row of a derived table
select d from (select id, name, email from customer) d order by id

-- data: a whole row of a common table
with d as (select region, count(*) as n from "order" group by region) select d from d order by region

-- data: a whole row of VALUES
select v from customer, (values (1, 'a'), (2, null)) as v(x, y) where id = 1 order by x

-- data: a row of values
select row(id, name, null, 'a"b'), (id, region) from customer order by id

-- data: a row with all columns in it
select row(c.*, 1.5) from customer c order by id

-- data: a whole row as text
select c::text, length(c::text) from customer c where c::text like '%[redacted]%' order by c::text

-- data: a row of values as text
select row(id, tags)::text as r from product order by r

-- data: rows that are NULL, or have NULL
select id, c is null as a, c is not null as b, c.* is not null as d from customer c order by id

-- data: who has no subscription
select c.id from customer c left join subscription s on s.customer_id = c.id and s.plan = 'pro' where s is null order by 1

-- data: a field of a row
select (c).name, (c).id + 1 as next from customer c where (c).region = 'eu' order by 2

-- data: all fields of a row
select (c).* from customer c order by id

-- data: a subscript of jsonb
select id, specs['weight'], specs['dims'] from product order by id

-- data: subscripts of jsonb
select id, specs['dims'][0], specs['dims'][-1], specs['dims']['1'], specs['none'][0] from product order by id

-- data: subscripts that are computed
select id, specs['dims'][id - id], (specs -> 'dims')[id % 2], specs['or' || 'igin'] from product order by id

-- data: a subscript in a condition
select id, props['utm']['source'] from event where props['utm']['source'] = '"ads"' and props['score'] > '3' order by id

-- data: subscripts in GROUP BY
select props['ab'], count(*) from event group by props['ab'] order by 1

-- data: subscripts of arrays of arrays
select id, texts[1], texts[1][2], texts[2][1], numbers[0] from sample order by id

-- data: quoting
select quote_ident(label), quote_literal(label), quote_nullable(price), quote_literal(tags), quote_ident('order') from product order by id

-- data: quoting of NULL
select quote_nullable(email), quote_literal(born), quote_nullable(born) from customer order by id

-- data: encodings
select id, convert_from(convert_to(name, 'UTF8'), 'UTF8'), encode(convert_to(name, 'latin1'), 'hex') from customer order by id

-- data: names of types
select pg_typeof(id)::text as a, pg_typeof(name)::text as b, pg_typeof(born)::text as c, pg_typeof(signed_up)::text as d, pg_typeof(null)::text as e, pg_typeof(1.5)::text as f from customer order by id

-- data: names of types of what is worked out
select pg_typeof(sum(quantity))::text as a, pg_typeof(avg(discount))::text as b, pg_typeof(array_agg(id))::text as c, pg_typeof(max(placed_at) - min(placed_at))::text as d from "order"

-- data: masks of addresses
select set_masklen('10.1.2.3/24'::inet, id), set_masklen('10.1.2.0/24'::cidr, 16), hostmask('10.1.2.3/20'::inet) from customer order by id

-- data: ranges put together
select range_agg(daterange(started, ended)), range_intersect_agg(daterange(started, null)) from subscription group by plan order by plan

-- data: DISTINCT with ties
select * from (select distinct region, status from "order" order by region fetch first 1 rows with ties) as d order by 1, 2

-- data: DISTINCT groups with ties
select distinct count(*) as n from "order" group by region, status order by n desc fetch first 2 rows with ties

-- data: VALUES in WITH, joined
with r(c) as (values (1), (2)) select e.id, e.kind from event e join r on r.c = e.id order by 1

-- data: VALUES in WITH, worked out once
with r(c, d) as materialized (values (2, 'a'), (5, 'b')) select e.id, r.d from event e join r on r.c = e.id order by 1

-- data: VALUES in WITH, and more of them
with r(c) as (values (1) union all values (2) union all select id from customer where id > 9) select c from r order by 1

-- data: a union that begins with VALUES
select v.b, v.a from ((values (1, 'a')) union select id, name from customer) as v(a, b) where v.a < 5 order by 2, 1

-- data: precision of a cast
select price::numeric(10,2), cast(price as numeric(6)) as whole, price::numeric(10,2) * 2 as twice, round(price, 1) as round from product order by id

-- data: precision through CASE and COALESCE
select case when id > 2 then price::numeric(10,2) else price::numeric(10,2) end as a, case when id > 2 then price::numeric(10,2) end as b, coalesce(price::numeric(10,2), 0) as c, nullif(price::numeric(9,3), 0) as d, greatest(price::numeric(8,1), price::numeric(8,1)) as e from product order by id

-- data: precision through tables
with t as (select id, price::numeric(10,2) as p, array[price::numeric(10,2)] as l from product) select t.p, u.p + 1 as q, t.l, t.l[1] as f, (select max(x.p)::numeric(7,2) from t x) as s from t join (select * from t) u on u.id = t.id order by t.id

-- data: precision of a union
select price::numeric(10,2) as p from product union all select price::numeric(10,2) from product order by p

-- data: precision that a union has not
select price::numeric(10,2) as p from product union all select price::numeric(12,2) from product order by p

-- data: precision of moments
select signed_up::timestamp(0) as a, signed_up::timestamptz(3) as b, signed_up::time(1) as c, name::char(3) as d from customer order by id

-- data: what has no precision
select max(price::numeric(10,2)) as a, sum(price::numeric(10,2)) as b, -avg(price)::numeric(10,2) as c, count(*) from product
