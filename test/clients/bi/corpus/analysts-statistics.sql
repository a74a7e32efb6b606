-- tool: analysts: percentiles, pivots, subtotals (analysts, simple)
-- data: quartiles
select percentile_cont(0.25) within group (order by amount) as q1, percentile_cont(0.5) within group (order by amount) as q2, percentile_cont(0.75) within group (order by amount) as q3 from "order";

-- data: percentiles of a group
select region, percentile_disc(0.9) within group (order by quantity) as p90, mode() within group (order by status) as usual from "order" group by region order by region;

-- data: an array of percentiles unnested
select region, unnest(array[0.1, 0.5, 0.9]) as p, unnest(percentile_cont(array[0.1, 0.5, 0.9]) within group (order by quantity)) as v from "order" group by region order by 1, 2;

-- data: interquartile outliers
with q as (select percentile_cont(0.25) within group (order by amount) as q1, percentile_cont(0.75) within group (order by amount) as q3 from "order")
select o.id, o.amount from "order" o, q where o.amount > q.q3 + 1.5 * (q.q3 - q.q1) or o.amount < q.q1 - 1.5 * (q.q3 - q.q1) order by 1;

-- data: outliers by CROSS JOIN of a one-row CTE
with s as (select avg(amount) as m, stddev(amount) as sd from "order")
select o.id from "order" o cross join s where abs(o.amount - s.m) > 1.5 * s.sd order by o.id;

-- data: correlation and regression
select round(corr(quantity, amount)::numeric, 6) as r, round(regr_slope(amount::float8, quantity)::numeric, 6) as slope, round(regr_intercept(amount::float8, quantity)::numeric, 6) as icpt, regr_count(amount, quantity) as n from "order";

-- data: covariance and r squared
select round(covar_pop(quantity, amount::float8)::numeric, 4), round(covar_samp(quantity, amount::float8)::numeric, 4), round(regr_r2(quantity, amount::float8)::numeric, 6) from "order";

-- data: standard deviations by group
select status, round(stddev(amount), 4) as sd, round(variance(amount), 4) as var, round(stddev_pop(quantity), 4) as sdp from "order" group by status order by 1;

-- data: histogram by width_bucket
select width_bucket(amount, 0, 270, 9) as bucket, count(*), min(amount), max(amount) from "order" group by 1 order by 1;

-- data: width_bucket over thresholds
select width_bucket(quantity, array[5, 10, 20]) as bucket, count(*) from "order" group by 1 order by 1;

-- data: hypothetical rank
select rank(100) within group (order by amount) as r, round(percent_rank(100) within group (order by amount)::numeric, 4) as pr from "order";

-- data: pivot by FILTER
select region, sum(amount) filter (where status = 'new') as new, sum(amount) filter (where status = 'paid') as paid,
       sum(amount) filter (where status = 'shipped') as shipped, sum(amount) filter (where status = 'returned') as returned from "order" group by region order by region;

-- data: pivot by CASE
select date_trunc('month', placed_at)::date as month, sum(case when region = 'eu' then amount else 0 end) as eu, sum(case when region = 'us' then amount else 0 end) as us from "order" group by 1 order by 1;

-- data: unpivot by UNION ALL
select id, 'quantity' as measure, quantity::numeric as value from "order" where id < 4 union all select id, 'amount', amount from "order" where id < 4 order by 1, 2;

-- data: unpivot by LATERAL VALUES
select o.id, v.measure, v.value from "order" o cross join lateral (values ('quantity', o.quantity::numeric), ('amount', o.amount)) as v(measure, value) where o.id < 5 order by 1, 2;

-- data: unpivot by unnest of two arrays
select id, unnest(array['q', 'a']) as measure, unnest(array[quantity::numeric, amount]) as value from "order" where id < 5 order by 1, 2;

-- data: pivot into JSON
select region, jsonb_object_agg(status, n order by status) as by_status from (select region, status, count(*) as n from "order" group by 1, 2) x group by region order by region;

-- data: ROLLUP
select region, status, sum(amount) as s from "order" group by rollup (region, status) order by region nulls last, status nulls last;

-- data: CUBE with GROUPING
select region, status, grouping(region, status) as g, count(*) from "order" group by cube (region, status) order by 3, 1, 2;

-- data: GROUPING SETS with labels
select coalesce(region, 'all') as region, case when grouping(status) = 1 then 'all' else status end as status, sum(quantity) as q from "order" group by grouping sets ((region, status), (region), ()) order by 1, 2, 3;

-- data: grand total by UNION ALL
select region, sum(amount) as s from "order" group by region union all select 'total', sum(amount) from "order" order by 1;

-- data: subtotals by a ROLLUP of one column with HAVING
select status, count(*) from "order" group by rollup (status) having count(*) > 10 order by 1 nulls last;

-- data: weighted average
select region, sum(amount * quantity) / nullif(sum(quantity), 0) as weighted from "order" group by 1 order by 1;

-- data: geometric mean
select round(exp(avg(ln(amount + 1)))::numeric, 4) as geomean from "order";

-- data: counts of nulls by column
select count(*) as n, count(note) as notes, count(*) - count(note) as missing, count(distinct status) as statuses, sum((discount is null)::int) as no_discount from "order";

-- data: profile of a column
select min(amount), max(amount), avg(amount), sum(amount), count(distinct amount), min(length(note)), max(length(note)) from "order";

-- data: most frequent values with share
select status, count(*) as n, round(count(*) * 100.0 / (select count(*) from "order"), 2) as pct from "order" group by 1 order by 2 desc, 1;

-- data: top five and the rest
with t as (select customer_id, sum(amount) as s from "order" group by 1), r as (select customer_id, s, row_number() over (order by s desc) as rn from t)
select case when rn <= 5 then customer_id::text else 'other' end as who, sum(s) as s from r group by 1 order by 2 desc;

-- data: GROUP BY ALL columns by position with expression
select upper(region), quantity > 20, count(*) from "order" group by 1, 2 order by 1, 2;

-- data: HAVING over several aggregates
select customer_id, count(*) as n from "order" group by customer_id having count(*) > 5 and sum(amount) > 100 and bool_and(quantity > 0) order by 1;

-- data: DISTINCT inside aggregates
select count(distinct (region, status)) as pairs from "order";

-- data: count distinct of a concatenation
select count(distinct region || '/' || status) as pairs, string_agg(distinct status, ',' order by status) as list from "order";

-- data: every, bool_or, bit_or
select every(quantity > 0), bool_or(status = 'new'), bit_or(quantity), bit_and(quantity), bit_xor(quantity) from "order";

-- data: a crosstab over months with arrays
select region, array_agg(s order by month) as by_month from (select region, date_trunc('month', placed_at) as month, sum(amount) as s from "order" group by 1, 2) x group by region order by region;

-- data: chi squared of a table
with o as (select region, status, count(*)::numeric as n from "order" group by 1, 2),
r as (select region, sum(n) as rn from o group by 1), c as (select status, sum(n) as cn from o group by 1), t as (select sum(n) as tn from o)
select round(sum((o.n - r.rn * c.cn / t.tn) ^ 2 / (r.rn * c.cn / t.tn)), 4) as chi2 from o join r using (region) join c using (status) cross join t;

-- data: gini coefficient
with s as (select sum(amount) as x, row_number() over (order by sum(amount)) as i, count(*) over () as n from "order" group by customer_id)
select round(2 * sum(i * x) / (max(n) * sum(x)) - (max(n) + 1.0) / max(n), 4) as gini from s;

-- data: sample by hash
-- refused: `hashtext` is undocumented and its results differ between versions; `md5` is the same everywhere
select count(*) from "order" where mod(abs(hashtext(id::text)), 10) < 3;

-- data: a reproducible sample by md5
select id from "order" order by md5(id::text) limit 7;

-- data: TABLESAMPLE
-- refused: Postgres samples before it filters, so the number of rows would reveal hidden ones; tables that hide nothing can be sampled
select count(*) >= 0 as any_rows from "order" tablesample system (50) repeatable (1);

-- data: a random sample
select count(*) from (select id from "order" order by random() limit 10) s;

-- data: moving correlation over a window
select id, round(corr(quantity, amount) over (order by id rows between 9 preceding and current row)::numeric, 4) as r from "order" order by id limit 30;

-- data: benford's first digits
select left(ltrim(amount::text, '0.'), 1) as digit, count(*) from "order" group by 1 order by 1;

-- data: case with ranges and order by position
select case when amount < 50 then '1: low' when amount < 150 then '2: middle' else '3: high' end as band, count(*), sum(amount) from "order" group by 1 order by 1;

-- data: safe division and rounding
select region, round(sum(amount) / nullif(sum(case when status = 'returned' then 1 end), 0), 2) as per_return, (sum(quantity)::float / count(*))::numeric(8, 3) as mean from "order" group by region order by 1;

-- data: LIMIT with ties
select id, quantity from "order" order by quantity desc fetch first 3 rows with ties;

-- data: OFFSET pages
select id from "order" order by id offset 20 rows fetch next 10 rows only;
