-- tool: Superset (written, simple)
-- session: SQLAlchemy connects
select pg_catalog.version();
select current_schema();
show standard_conforming_strings;
show transaction isolation level;

-- session: sets the schema of a query
set search_path = 'entities';
SELECT count(*) FROM customer;

-- session: estimates the cost of a query
EXPLAIN SELECT region, count(*) FROM entities."order" GROUP BY region;

-- session: cancels
SELECT pg_backend_pid() IS NOT NULL;

-- data: a mixed time series with two metrics
SELECT DATE_TRUNC('month', placed_at) AS placed_at, status AS status, COUNT(*) AS count, SUM(amount) AS "SUM(amount)" FROM entities."order" WHERE placed_at >= TO_TIMESTAMP('2025-10-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND status IN ('new', 'paid') GROUP BY DATE_TRUNC('month', placed_at), status ORDER BY count DESC, placed_at, status LIMIT 1000;

-- data: top series by a join
SELECT DATE_TRUNC('week', placed_at) AS __timestamp, status AS status, count(*) AS count FROM entities."order" JOIN (SELECT status AS status__, count(*) AS mme_inner__ FROM entities."order" GROUP BY status ORDER BY mme_inner__ DESC, status__ LIMIT 2) AS anon_1 ON status = status__ GROUP BY status, DATE_TRUNC('week', placed_at) ORDER BY count DESC, __timestamp, status LIMIT 10000;

-- data: a virtual data set with a join
SELECT region AS region, COUNT(DISTINCT customer_id) AS n FROM (select o.*, c.name, c.born from "order" o left join customer c on c.id = o.customer_id) AS virtual_table WHERE born IS NOT NULL GROUP BY region ORDER BY n DESC, region LIMIT 100;

-- data: a virtual data set with a calendar
SELECT DATE_TRUNC('day', day) AS day, sum(n) AS n FROM (select d::date as day, count(o.id) as n from generate_series('2025-11-01'::timestamp, '2025-11-14'::timestamp, '1 day') d left join "order" o on o.placed_at::date = d::date group by 1) AS virtual_table GROUP BY DATE_TRUNC('day', day) ORDER BY 1 LIMIT 50;

-- data: a totals row
SELECT COUNT(*) AS count, SUM(amount) AS "SUM(amount)", AVG(quantity) AS "AVG(quantity)" FROM entities."order" LIMIT 50000;

-- data: samples of a data set
SELECT * FROM entities."order" ORDER BY id LIMIT 100 OFFSET 0;

-- data: row level security clause of its own
SELECT status AS status, COUNT(*) AS count FROM entities."order" WHERE ((region = 'eu')) AND ((quantity > 3)) GROUP BY status ORDER BY count DESC, status LIMIT 100;

-- data: Jinja filter values
SELECT DISTINCT kind AS kind FROM entities.event WHERE kind LIKE '%i%' ORDER BY kind LIMIT 1000;

-- data: a big number with trend
SELECT DATE_TRUNC('day', placed_at) AS __timestamp, MAX(amount) AS "MAX(amount)" FROM entities."order" GROUP BY DATE_TRUNC('day', placed_at) ORDER BY 1 ASC LIMIT 50000;

-- data: a histogram
SELECT amount AS amount FROM entities."order" WHERE amount IS NOT NULL ORDER BY 1 LIMIT 1000;

-- data: case-sensitive pivot labels
SELECT region AS "Region", status AS "Status", SUM(amount) AS "Total €" FROM entities."order" GROUP BY region, status ORDER BY "Total €" DESC LIMIT 1000;
