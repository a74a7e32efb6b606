-- tool: analysts: cohorts, funnels, retention (analysts, simple)
-- data: cohorts by month of first order
with firsts as (select customer_id, date_trunc('month', min(placed_at)) as cohort from "order" group by 1)
select f.cohort::date, count(distinct f.customer_id) as customers, count(*) as orders, sum(o.amount) as revenue
from firsts f join "order" o on o.customer_id = f.customer_id group by 1 order by 1;

-- data: retention by months since the first order
with firsts as (select customer_id, date_trunc('month', min(placed_at)) as cohort from "order" group by 1),
activity as (select distinct customer_id, date_trunc('month', placed_at) as month from "order")
select f.cohort::date as cohort,
       (extract(year from age(a.month, f.cohort)) * 12 + extract(month from age(a.month, f.cohort)))::int as months,
       count(distinct a.customer_id) as active
from firsts f join activity a using (customer_id) group by 1, 2 order by 1, 2;

-- data: retention as a triangle by FILTER
with c as (select customer_id, min(placed_at::date) as d0 from "order" group by 1)
select date_trunc('month', c.d0)::date as cohort, count(distinct o.customer_id) as size,
       count(distinct o.customer_id) filter (where o.placed_at::date - c.d0 between 1 and 30) as m1,
       count(distinct o.customer_id) filter (where o.placed_at::date - c.d0 between 31 and 60) as m2,
       count(distinct o.customer_id) filter (where o.placed_at::date - c.d0 between 61 and 90) as m3
from c join "order" o on o.customer_id = c.customer_id group by 1 order by 1;

-- data: seven day retention of visitors by a self join
select a.day, count(distinct a.customer_id) as users, count(distinct b.customer_id) as back
from (select distinct customer_id, at::date as day from event where customer_id is not null) a
left join (select distinct customer_id, at::date as day from event where customer_id is not null) b
  on b.customer_id = a.customer_id and b.day between a.day + 1 and a.day + 7
group by a.day order by a.day;

-- data: a funnel by conditional counts
select count(distinct customer_id) filter (where kind = 'visit') as visited,
       count(distinct customer_id) filter (where kind = 'view') as viewed,
       count(distinct customer_id) filter (where kind = 'cart') as carted,
       count(distinct customer_id) filter (where kind = 'buy') as bought
from event;

-- data: a funnel in order by chained joins
with visit as (select customer_id, min(at) as at from event where kind = 'visit' group by 1),
cart as (select e.customer_id, min(e.at) as at from event e join visit v on v.customer_id = e.customer_id and e.at > v.at where e.kind = 'cart' group by 1),
buy as (select e.customer_id, min(e.at) as at from event e join cart c on c.customer_id = e.customer_id and e.at > c.at where e.kind = 'buy' group by 1)
select (select count(*) from visit) as visits, (select count(*) from cart) as carts, (select count(*) from buy) as buys;

-- data: a funnel with LEFT JOIN LATERAL
select count(*) as visits, count(c.at) as carts, count(b.at) as buys
from (select customer_id, min(at) as at from event where kind = 'visit' and customer_id is not null group by 1) v
left join lateral (select e.at from event e where e.customer_id = v.customer_id and e.kind = 'cart' and e.at > v.at order by e.at limit 1) c on true
left join lateral (select e.at from event e where e.customer_id = v.customer_id and e.kind = 'buy' and e.at > c.at order by e.at limit 1) b on true;

-- data: time from sign-up to first order
select c.region, round(avg(extract(epoch from f.first_order - c.signed_up) / 86400)::numeric, 2) as days
from customer c join (select customer_id, min(placed_at) as first_order from "order" group by 1) f on f.customer_id = c.id group by 1 order by 1;

-- data: new against returning customers
select date_trunc('month', o.placed_at)::date as month,
       count(distinct case when o.placed_at = f.first_at then o.customer_id end) as new,
       count(distinct case when o.placed_at > f.first_at then o.customer_id end) as returning
from "order" o join (select customer_id, min(placed_at) as first_at from "order" group by 1) f on f.customer_id = o.customer_id group by 1 order by 1;

-- data: churned subscriptions by month
select date_trunc('month', ended)::date as month, count(*) as churned, sum(monthly) as lost from subscription where ended is not null group by 1 order by 1;

-- data: active subscriptions on each day of a series
select d::date as day, count(s.id) as active
from generate_series(date '2025-10-01', date '2025-12-01', interval '1 week') as d
left join subscription s on s.started <= d and (s.ended is null or s.ended > d)
group by 1 order by 1;

-- data: monthly recurring revenue by a calendar
with months as (select generate_series(date '2025-09-01', date '2026-05-01', interval '1 month')::date as month)
select m.month, coalesce(sum(s.monthly), 0) as mrr, count(s.id) as subscribers
from months m left join subscription s on s.started < m.month + interval '1 month' and coalesce(s.ended, date '9999-12-31') >= m.month
group by m.month order by m.month;

-- data: customers lost for ninety days
select c.id, c.name, max(o.placed_at)::date as last_order from customer c left join "order" o on o.customer_id = c.id
group by c.id, c.name having max(o.placed_at) < timestamptz '2026-03-01' or max(o.placed_at) is null order by c.id;

-- data: RFM scores
with rfm as (select customer_id, max(placed_at) as recency, count(*) as frequency, sum(amount) as monetary from "order" group by 1)
select customer_id, ntile(5) over (order by recency) as r, ntile(5) over (order by frequency, customer_id) as f, ntile(5) over (order by monetary) as m from rfm order by customer_id;

-- data: RFM as a label
with rfm as (select customer_id, ntile(3) over (order by max(placed_at)) as r, ntile(3) over (order by sum(amount)) as m from "order" group by 1)
select case when r = 3 and m = 3 then 'champion' when r = 1 then 'lost' else 'other' end as segment, count(*) from rfm group by 1 order by 1;

-- data: repeat purchase rate
select round(count(*) filter (where n > 1)::numeric / count(*), 4) as repeat_rate from (select customer_id, count(*) as n from "order" group by 1) x;

-- data: days between orders
select customer_id, round(avg(gap)::numeric, 2) as avg_gap, max(gap) as longest from (
  select customer_id, placed_at::date - lag(placed_at::date) over (partition by customer_id order by placed_at) as gap from "order") g
where gap is not null group by 1 order by 1;

-- data: conversion per source from JSON
select props -> 'utm' ->> 'source' as source, count(*) filter (where kind = 'visit') as visits, count(*) filter (where kind = 'buy') as buys,
       round(count(*) filter (where kind = 'buy')::numeric / nullif(count(*) filter (where kind = 'visit'), 0), 3) as rate
from event group by 1 order by 1;

-- data: stickiness: daily over monthly users
with d as (select at::date as day, count(distinct customer_id) as dau from event group by 1),
m as (select date_trunc('month', at)::date as month, count(distinct customer_id) as mau from event group by 1)
select m.month, round(avg(d.dau) / max(m.mau), 3) as stickiness from d join m on date_trunc('month', d.day)::date = m.month group by 1 order by 1;

-- data: rolling weekly users by a correlated subquery
select d.day, (select count(distinct e.customer_id) from event e where e.at::date between d.day - 6 and d.day) as wau
from (select distinct at::date as day from event) d order by d.day;

-- data: the paths of events
select path, count(*) as n from (select session_id, string_agg(kind, ' > ' order by at) as path from event group by session_id) p group by path order by n desc, path limit 20;

-- data: next event after each
select kind, next_kind, count(*) from (select kind, lead(kind) over (partition by customer_id order by at) as next_kind from event) t group by 1, 2 order by 1, 2 nulls last;

-- data: first touch attribution
select first_source, count(*) as buyers from (
  select distinct on (e.customer_id) e.customer_id, e.props #>> '{utm,source}' as first_source from event e where e.customer_id is not null order by e.customer_id, e.at) f
where customer_id in (select customer_id from event where kind = 'buy') group by 1 order by 1;

-- data: a test's two arms
select props ->> 'ab' as arm, count(*) as n, avg(coalesce(seconds, 0))::numeric(10, 3) as mean, var_samp(seconds)::numeric(14, 3) as variance from event group by 1 order by 1;

-- data: customers who did one thing and never another
select c.id from customer c where exists (select 1 from event e where e.customer_id = c.id and e.kind = 'cart')
and not exists (select 1 from event e where e.customer_id = c.id and e.kind = 'buy') order by 1;

-- data: both of two things by INTERSECT
select customer_id from event where kind = 'cart' intersect select customer_id from event where kind = 'buy' order by 1;

-- data: one without the other by EXCEPT
select customer_id from "order" where status = 'paid' except select customer_id from "order" where status = 'returned' order by 1;

-- data: basket pairs
select a.product_id as p1, b.product_id as p2, count(*) as together from line a join line b on a.order_id = b.order_id and a.product_id < b.product_id group by 1, 2 order by 3 desc, 1, 2 limit 10;

-- data: lifetime value by cohort with running sums
with f as (select customer_id, min(date_trunc('month', placed_at)) as cohort from "order" group by 1),
v as (select f.cohort, date_trunc('month', o.placed_at) as month, sum(o.amount) as revenue from f join "order" o using (customer_id) group by 1, 2)
select cohort::date, month::date, sum(revenue) over (partition by cohort order by month) as ltv from v order by 1, 2;

-- data: cohort sizes joined back as percentages
with f as (select customer_id, date_trunc('month', min(at)) as cohort from event where customer_id is not null group by 1),
size as (select cohort, count(*) as n from f group by 1),
act as (select f.cohort, date_trunc('week', e.at) as week, count(distinct e.customer_id) as active from event e join f on f.customer_id = e.customer_id group by 1, 2)
select act.cohort::date, act.week::date, round(100.0 * act.active / size.n, 1) as pct from act join size on size.cohort = act.cohort order by 1, 2;

-- data: survival by plan
select plan, count(*) as n, count(*) filter (where ended is null) as alive, avg(ended - started)::numeric(10, 2) as mean_days from subscription group by plan order by plan;

-- data: reactivations
select count(*) from (select customer_id, placed_at, lag(placed_at) over (partition by customer_id order by placed_at) as prev from "order") x where placed_at - prev > interval '20 days';

-- data: hour of week heat map
select extract(isodow from at)::int as dow, extract(hour from at)::int as hour, count(*) from event group by 1, 2 order by 1, 2;

-- data: sessions with duration
select session_id, max(at) - min(at) as duration, count(*) as steps, bool_or(kind = 'buy') as converted from event group by 1 order by 1;

-- data: bounce rate
select round(avg(case when n = 1 then 1 else 0 end), 3) as bounce from (select session_id, count(*) as n from event group by 1) s;

-- data: upgrade from one plan to another
select a.customer_id, a.plan as from_plan, b.plan as to_plan from subscription a join subscription b on a.customer_id = b.customer_id and b.started > a.started
where not exists (select 1 from subscription m where m.customer_id = a.customer_id and m.started > a.started and m.started < b.started) order by 1, a.started;
