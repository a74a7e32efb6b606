-- tool: analysts: dates and gap filling (analysts, simple)
-- data: days without orders by generate_series
select d::date as day, coalesce(sum(o.amount), 0) as revenue
from generate_series(timestamptz '2025-11-01 00:00:00+00', timestamptz '2025-11-30 00:00:00+00', interval '1 day') as d
left join "order" o on date_trunc('day', o.placed_at) = d group by 1 order by 1;

-- data: a calendar in a CTE
with cal as (select d::date as day from generate_series('2025-11-01'::date, '2025-11-30'::date, '1 day'::interval) d),
daily as (select placed_at::date as day, count(*) as n from "order" group by 1)
select cal.day, coalesce(daily.n, 0) as n from cal left join daily using (day) order by 1;

-- data: a calendar times dimension by CROSS JOIN
with cal as (select generate_series(date '2025-12-01', date '2025-12-07', '1 day')::date as day),
r as (select distinct region from customer)
select cal.day, r.region, count(o.id) as n from cal cross join r left join "order" o on o.placed_at::date = cal.day and o.region = r.region group by 1, 2 order by 1, 2;

-- data: numbers by generate_series
select n, n * n as square from generate_series(1, 10) as n order by n;

-- data: numbers with step and alias of the column
select s.i from generate_series(0, 100, 25) as s(i) order by 1 desc;

-- data: hours of a day
select h.hour, count(e.id) from generate_series(0, 23) as h(hour) left join event e on extract(hour from e.at) = h.hour group by 1 order by 1;

-- data: histogram buckets with empty ones
select b.bucket, count(o.id) from generate_series(1, 10) as b(bucket) left join "order" o on width_bucket(o.amount, 0, 270, 10) = b.bucket group by 1 order by 1;

-- data: carry the last value over days
select day, (select p.paid from payment p where p.paid_at::date <= day order by p.paid_at desc limit 1) as last_paid
from generate_series(date '2025-11-01', date '2025-11-10', interval '1 day') as day order by day;

-- data: this month to date against last year
select count(*) filter (where placed_at >= date_trunc('month', timestamptz '2026-01-20 00:00:00+00')) as this_month,
       count(*) filter (where placed_at >= date_trunc('month', timestamptz '2026-01-20 00:00:00+00') - interval '1 month' and placed_at < date_trunc('month', timestamptz '2026-01-20 00:00:00+00')) as last_month from "order";

-- data: the last thirty days from now
select count(*) from "order" where placed_at >= now() - interval '30 years' and placed_at < current_date + 1;

-- data: fiscal year and quarter
select extract(year from placed_at + interval '3 months')::int as fy, ceil(extract(month from placed_at + interval '3 months') / 3.0)::int as fq, sum(amount) from "order" group by 1, 2 order by 1, 2;

-- data: ISO weeks
select to_char(placed_at, 'IYYY-"W"IW') as week, count(*) from "order" group by 1 order by 1;

-- data: week starting on Sunday
select (date_trunc('week', placed_at + interval '1 day') - interval '1 day')::date as sunday, count(*) from "order" group by 1 order by 1;

-- data: names of days and months
select to_char(placed_at, 'Dy') as dow, to_char(placed_at, 'FMMonth') as month, count(*) from "order" group by 1, 2 order by 1, 2;

-- data: business days between two dates
select id, (select count(*) from generate_series(o.placed_at::date, o.shipped_on, interval '1 day') g where extract(isodow from g) < 6) as days from "order" o where shipped_on is not null order by id limit 20;

-- data: age in years
select id, extract(year from age(date '2026-06-01', born)) as years from customer order by id;

-- data: age bands
select case when born is null then 'unknown' when age(date '2026-01-01', born) < interval '45 years' then 'young' else 'old' end as band, count(*) from customer group by 1 order by 1;

-- data: late shipments in days
select status, avg(shipped_on - placed_at::date) as days from "order" where shipped_on is not null group by status order by 1;

-- data: truncated to quarter hours
select date_trunc('hour', at) + floor(extract(minute from at) / 15) * interval '15 minutes' as slot, count(*) from event group by 1 order by 1 limit 40;

-- data: date_bin
select date_bin('6 hours', at, timestamp '2026-01-01') as slot, count(*) from event group by 1 order by 1;

-- data: local time of a zone
select (placed_at at time zone 'America/New_York')::date as local_day, count(*) from "order" group by 1 order by 1;

-- data: a naive time taken for local and made UTC
select id, at at time zone 'Europe/Berlin' as utc from event order by id limit 10;

-- data: time zones by three-argument date_trunc
select date_trunc('day', placed_at, 'Asia/Tokyo') as day, count(*) from "order" group by 1 order by 1;

-- data: epoch seconds and back
select id, extract(epoch from placed_at)::bigint as e, to_timestamp(extract(epoch from placed_at)) as back from "order" order by id limit 5;

-- data: text to date
select to_date('2026-02-28', 'YYYY-MM-DD') as a, to_timestamp('28/02/2026 13:05', 'DD/MM/YYYY HH24:MI') as b, '2026-02-28'::date + time '08:00' as c;

-- data: first and last day of a month
select distinct date_trunc('month', shipped_on)::date as first_day, (date_trunc('month', shipped_on) + interval '1 month - 1 day')::date as last_day from "order" where shipped_on is not null order by 1;

-- data: overlapping subscriptions
select a.id, b.id as other from subscription a join subscription b on a.customer_id = b.customer_id and a.id < b.id
where (a.started, coalesce(a.ended, date '2030-01-01')) overlaps (b.started, coalesce(b.ended, date '2030-01-01')) order by 1, 2;

-- data: overlap by ranges of dates
select count(*) from subscription where daterange(started, ended) && daterange('2025-10-01', '2025-11-01');

-- data: range containment
select plan, count(*) from subscription where daterange(started, ended, '[)') @> date '2025-12-24' group by 1 order by 1;

-- data: make_date and make_interval
select make_date(2026, 2, 1) + make_interval(days => 10) as a, make_timestamp(2026, 2, 1, 8, 30, 0) as b;

-- data: justify an interval
select justify_hours(interval '50 hours') as a, justify_days(interval '45 days') as b, extract(day from interval '3 days 4 hours') as c;

-- data: sum of intervals
select kind, sum(seconds * interval '1 second') as total, avg(make_interval(secs => seconds)) as mean from event group by kind order by kind;

-- data: date parts by date_part
select date_part('doy', placed_at) as doy, date_part('week', placed_at) as w, date_part('isoyear', placed_at) as y from "order" order by id limit 5;

-- data: current date literals
select current_date - current_date as zero, 'today'::date = current_date as same, now() = transaction_timestamp() as also;

-- data: date differences in months
select id, (extract(year from shipped_on) - extract(year from placed_at)) * 12 + extract(month from shipped_on) - extract(month from placed_at) as months from "order" where shipped_on is not null order by id limit 10;

-- data: weekday filter
select count(*) from "order" where extract(dow from placed_at) not in (0, 6);

-- data: BETWEEN dates on a timestamp
select count(*) from "order" where placed_at::date between '2025-11-01' and '2025-11-30';

-- data: half-open month by interval
select count(*) from "order" where placed_at >= '2025-11-01' and placed_at < '2025-11-01'::timestamptz + '1 month'::interval;

-- data: time of day
select placed_at::time as t, count(*) from "order" where placed_at::time between '08:00' and '12:00' group by 1 order by 1 limit 20;

-- data: date arithmetic with integers
select shipped_on + 7 as due, shipped_on - 1 as before, shipped_on - date '2025-10-01' as days from "order" where shipped_on is not null order by id limit 5;

-- data: infinity and special dates
select count(*) from sample where day < 'infinity' and moment > '-infinity';

-- data: timestamps without zone against with
select count(*) from event e where e.at > timestamptz '2026-01-10 00:00:00+00';

-- data: latest complete month
select max(month) from (select date_trunc('month', placed_at)::date as month, count(distinct placed_at::date) as days from "order" group by 1 having count(distinct placed_at::date) > 20) m;

-- data: rolling twelve months by a lateral sum
select m.month, t.total from (select distinct date_trunc('month', placed_at) as month from "order") m
cross join lateral (select sum(amount) as total from "order" o where o.placed_at >= m.month - interval '2 months' and o.placed_at < m.month + interval '1 month') t order by 1;

-- data: intervals formatted
select to_char(interval '26 hours 5 minutes', 'HH24:MI') as a, extract(epoch from interval '1 day 1 hour') / 3600 as hours;
