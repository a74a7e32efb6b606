-- tool: analysts: windows and rankings (analysts, simple)
-- data: running total by day
select placed_at::date as day, sum(amount) as revenue,
       sum(sum(amount)) over (order by placed_at::date) as running
from "order" group by 1 order by 1;

-- data: moving average of seven rows
select day, revenue, round(avg(revenue) over (order by day rows between 6 preceding and current row), 2) as ma7
from (select placed_at::date as day, sum(amount) as revenue from "order" group by 1) d order by day;

-- data: moving sum over a range of days
select day, sum(revenue) over (order by day range between interval '7 days' preceding and current row) as week
from (select placed_at::date as day, sum(amount) as revenue from "order" group by 1) d order by day;

-- data: top three orders per customer
select customer_id, id, amount from (
  select customer_id, id, amount, row_number() over (partition by customer_id order by amount desc, id) as rn from "order"
) t where rn <= 3 order by customer_id, rn;

-- data: top product per category with ties
select category_id, label, price from (
  select category_id, label, price, rank() over (partition by category_id order by price desc nulls last) as r from product
) t where r = 1 order by category_id, label;

-- data: rank, dense_rank, percent_rank, cume_dist, ntile
select id, amount, rank() over w, dense_rank() over w, round(percent_rank() over w::numeric, 3) as pr, ntile(4) over w as quartile
from "order" window w as (order by amount) order by amount, id;

-- data: percent_rank and cume_dist rounded
select id, round((percent_rank() over (order by quantity))::numeric, 4) as pr, round((cume_dist() over (order by quantity))::numeric, 4) as cd from "order" order by id;

-- data: difference to the previous order
select customer_id, placed_at, amount - lag(amount) over (partition by customer_id order by placed_at) as delta
from "order" order by customer_id, placed_at;

-- data: lag with a default and an offset
select id, lag(quantity, 2, 0) over (order by id) as two_back, lead(quantity, 1, -1) over (order by id) as next_one from "order" order by id;

-- data: first and last value of a partition
select distinct customer_id, first_value(amount) over w as first_amount, last_value(amount) over w as last_amount
from "order" window w as (partition by customer_id order by placed_at rows between unbounded preceding and unbounded following) order by customer_id;

-- data: nth_value
select distinct region, nth_value(id, 2) over (partition by region order by placed_at rows between unbounded preceding and unbounded following) as second from "order" order by region;

-- data: share of a total
select region, sum(amount) as s, round(100 * sum(amount) / sum(sum(amount)) over (), 2) as pct from "order" group by region order by region;

-- data: share within a group
select region, status, round(sum(amount) * 100.0 / sum(sum(amount)) over (partition by region), 1) as pct from "order" group by region, status order by 1, 2;

-- data: running distinct by a first-seen flag
select day, sum(new_customers) over (order by day) as seen from (
  select first_day as day, count(*) as new_customers from (select customer_id, min(placed_at::date) as first_day from "order" group by 1) f group by 1
) x order by day;

-- data: sessions from gaps in events
with gaps as (
  select customer_id, at, case when at - lag(at) over (partition by customer_id order by at) > interval '1 day' then 1 else 0 end as is_new from event where customer_id is not null
), numbered as (
  select customer_id, at, sum(is_new) over (partition by customer_id order by at) as session_no from gaps
)
select customer_id, session_no, min(at) as started, max(at) as ended, count(*) as events from numbered group by 1, 2 order by 1, 2;

-- data: islands of consecutive days
with days as (select distinct placed_at::date as day from "order"),
     grouped as (select day, day - (row_number() over (order by day))::int as island from days)
select min(day) as from_day, max(day) as to_day, count(*) as days from grouped group by island order by 1;

-- data: latest row per customer by row_number
select * from (select o.*, row_number() over (partition by customer_id order by placed_at desc) as rn from "order" o) t where rn = 1 order by customer_id;

-- data: latest row per customer by DISTINCT ON
select distinct on (customer_id) customer_id, id, placed_at, status from "order" order by customer_id, placed_at desc;

-- data: DISTINCT ON with an expression
select distinct on (date_trunc('month', placed_at)) date_trunc('month', placed_at) as month, id, amount from "order" order by date_trunc('month', placed_at), amount desc;

-- data: month over month growth
with m as (select date_trunc('month', placed_at)::date as month, sum(amount) as revenue from "order" group by 1)
select month, revenue, lag(revenue) over (order by month) as previous,
       round((revenue - lag(revenue) over (order by month)) / nullif(lag(revenue) over (order by month), 0) * 100, 1) as growth
from m order by month;

-- data: year to date by partition
select date_trunc('month', placed_at)::date as month,
       sum(sum(amount)) over (partition by extract(year from date_trunc('month', placed_at)) order by date_trunc('month', placed_at)) as ytd
from "order" group by date_trunc('month', placed_at) order by 1;

-- data: windows with EXCLUDE
select id, sum(quantity) over (order by id rows between 1 preceding and 1 following exclude current row) as neighbours from "order" order by id;

-- data: GROUPS frame
select id, count(*) over (order by quantity groups between 1 preceding and 1 following) as near from "order" order by id;

-- data: FILTER in a window
select id, count(*) filter (where status = 'paid') over (partition by customer_id order by placed_at) as paid_so_far from "order" order by id;

-- data: named windows that extend one another
select id, sum(amount) over w1 as a, avg(quantity) over w2 as b from "order" window w as (partition by region), w1 as (w order by id), w2 as (w order by id rows 2 preceding) order by id;

-- data: deciles of customers by spend
select decile, count(*) as customers, round(min(spend), 2) as low, round(max(spend), 2) as high from (
  select customer_id, sum(amount) as spend, ntile(10) over (order by sum(amount)) as decile from "order" group by customer_id) d group by decile order by decile;

-- data: pareto of customers
with s as (select customer_id, sum(amount) as spend from "order" group by 1)
select customer_id, spend, round(sum(spend) over (order by spend desc rows unbounded preceding) / sum(spend) over (), 4) as cumulative
from s order by spend desc;

-- data: streaks of a status
select status, min(id) as first_id, count(*) as n from (
  select id, status, row_number() over (order by id) - row_number() over (partition by status order by id) as g from "order") x
group by status, g having count(*) > 1 order by 2;

-- data: median by ordered position
select avg(amount) from (select amount, row_number() over (order by amount) as rn, count(*) over () as n from "order") x where rn in ((n + 1) / 2, (n + 2) / 2);

-- data: z-scores
select id, round((quantity - avg(quantity) over ()) / nullif(stddev_samp(quantity) over (), 0), 3) as z from "order" order by id;

-- data: gap to the best of a group
select name, department, salary, max(salary) over (partition by department) - salary as behind from employee order by department, behind nulls last, name;

-- data: ratio to a lagged aggregate with coalesce
select date_trunc('week', at) as week, count(*) as n, coalesce(count(*)::numeric / nullif(lag(count(*)) over (order by date_trunc('week', at)), 0), 0)::numeric(10, 3) as ratio from event group by 1 order by 1;

-- data: rows numbered over no order
select count(*) from (select row_number() over () as rn from "order") x where rn % 2 = 0;

-- data: array_agg in a window
select id, array_agg(id) over (partition by customer_id order by id rows between 2 preceding and current row) as last_three from "order" order by id;

-- data: string_agg in a window
select id, string_agg(status, '>') over (partition by customer_id order by id) as path from "order" order by id;

-- data: bool_or in a window
select id, bool_or(status = 'returned') over (partition by customer_id order by id) as ever_returned from "order" order by id;

-- data: a window over a DISTINCT subquery
select region, count(*) over () as regions from (select distinct region from customer) r order by 1;

-- data: the qualifying rows of a window in a CTE
with ranked as (select id, region, amount, dense_rank() over (partition by region order by amount desc) as dr from "order")
select region, array_agg(id order by id) as ids, max(amount) as best from ranked where dr <= 2 group by region order by region;

-- data: interpolation of missing values by last known one
select id, price, max(price) over (partition by grp) as carried from (
  select id, price, count(price) over (order by id) as grp from product) p order by id;

-- data: cumulative count as a fraction
select kind, at, round(row_number() over (partition by kind order by at)::numeric / count(*) over (partition by kind), 3) as frac from event order by kind, at limit 50;

-- data: exponential weights by lag and coalesce
select id, round(0.5 * amount + 0.3 * coalesce(lag(amount) over w, amount) + 0.2 * coalesce(lag(amount, 2) over w, amount), 2) as smooth from "order" window w as (order by id) order by id;

-- data: percentile of each row within a group, as text
select id, region, to_char(100 * percent_rank() over (partition by region order by amount), 'FM990.0') || '%' as pct from "order" order by id;

-- data: dedupe by a window then aggregate
select status, count(*) from (select status, row_number() over (partition by customer_id, status order by placed_at) as rn from "order") d where rn = 1 group by status order by 1;
