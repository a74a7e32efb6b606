-- tool: Looker (written, simple)
-- session: connects
SET SESSION TIME ZONE 'UTC';
SET statement_timeout TO 600000;
SELECT current_setting('server_version');

-- session: a persistent derived table is tried
-- refused: the gateway never writes; Looker's derived tables work as common tables
CREATE TABLE looker_scratch.connection_reg_r3 (a integer);

-- data: symmetric aggregates
SELECT customers.region AS "customers.region", COALESCE(CAST((SUM(DISTINCT (CAST(FLOOR(COALESCE(orders.amount, 0)*(1000000*1.0)) AS DECIMAL(65,0))) + ('x' || MD5(orders.id::varchar))::bit(64)::bigint::DECIMAL(65)*18446744073709551616 + ('x' || SUBSTR(MD5(orders.id::varchar),17))::bit(64)::bigint::DECIMAL(65)) - SUM(DISTINCT ('x' || MD5(orders.id::varchar))::bit(64)::bigint::DECIMAL(65)*18446744073709551616 + ('x' || SUBSTR(MD5(orders.id::varchar),17))::bit(64)::bigint::DECIMAL(65))) AS DOUBLE PRECISION) / CAST((1000000*1.0) AS DOUBLE PRECISION), 0) AS "orders.total"
FROM entities.payment AS payments LEFT JOIN entities."order" AS orders ON payments.order_id = orders.id LEFT JOIN entities.customer AS customers ON orders.customer_id = customers.id GROUP BY 1 ORDER BY 1;

-- data: distinct counts over a fan-out
SELECT customers.region AS "customers.region", COUNT(DISTINCT orders.id) AS "orders.count", COUNT(DISTINCT CASE WHEN payments.method = 'card' THEN payments.id END) AS "payments.cards" FROM entities.customer AS customers LEFT JOIN entities."order" AS orders ON customers.id = orders.customer_id LEFT JOIN entities.payment AS payments ON payments.order_id = orders.id GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 500;

-- data: date dimensions
SELECT (DATE(orders.placed_at)) AS "orders.placed_date", (TO_CHAR(DATE_TRUNC('month', orders.placed_at), 'YYYY-MM')) AS "orders.placed_month", (EXTRACT(QUARTER FROM orders.placed_at)::integer) AS "q" FROM entities."order" AS orders GROUP BY 1, 2, 3 ORDER BY 1 DESC LIMIT 20;

-- data: time zone conversion
SELECT (DATE(orders.placed_at::timestamptz AT TIME ZONE 'UTC' AT TIME ZONE 'America/Los_Angeles')) AS "d", COUNT(*) AS "n" FROM entities."order" AS orders GROUP BY 1 ORDER BY 1 LIMIT 30;

-- data: filtered measures
SELECT orders.status AS "orders.status", COUNT(CASE WHEN (orders.quantity > 10) THEN 1 ELSE NULL END) AS "orders.big", COALESCE(SUM(CASE WHEN (orders.region = 'eu') THEN orders.amount ELSE NULL END), 0) AS "orders.eu" FROM entities."order" AS orders GROUP BY 1 ORDER BY 1;

-- data: percentile measure
SELECT orders.region AS "r", CASE WHEN COUNT(orders.amount) <= 10000 THEN (ARRAY_AGG(orders.amount ORDER BY orders.amount))[CEIL(0.5 * COUNT(orders.amount))::int] ELSE NULL END AS "median" FROM entities."order" AS orders GROUP BY 1 ORDER BY 1;

-- data: a derived table with a window, filtered by a date range
WITH order_facts AS (SELECT id, customer_id, ROW_NUMBER() OVER (PARTITION BY customer_id ORDER BY placed_at) AS seq FROM entities."order")
SELECT order_facts.seq AS "seq", COUNT(*) AS "n" FROM entities."order" AS orders LEFT JOIN order_facts ON orders.id = order_facts.id WHERE ((( orders.placed_at ) >= ((DATE_TRUNC('day', TIMESTAMP '2025-11-01 00:00:00'))) AND ( orders.placed_at ) < ((DATE_TRUNC('day', TIMESTAMP '2026-02-01 00:00:00'))))) GROUP BY 1 ORDER BY 1;

-- data: totals of the query
SELECT COUNT(*) AS "n", COALESCE(AVG(orders.amount), 0) AS "avg" FROM entities."order" AS orders WHERE (orders.status ILIKE 'p%' OR orders.status IS NULL) LIMIT 1;

-- data: row totals by a common table
WITH base AS (SELECT orders.region AS r, orders.status AS s, COUNT(*) AS n FROM entities."order" AS orders GROUP BY 1, 2) SELECT r, SUM(n) AS total FROM base GROUP BY 1 ORDER BY 1;

-- data: cross join of a parameter table
SELECT orders.id FROM entities."order" AS orders CROSS JOIN (SELECT 20 AS threshold) AS params WHERE orders.quantity > params.threshold ORDER BY 1;
