-- tool: Grafana (written, simple)
-- session: tests a data source
SELECT 1;

-- session: time out of a query
SET statement_timeout = 30000;
SHOW statement_timeout;

-- data: $__timeGroup and $__timeFilter
SELECT floor(extract(epoch from placed_at)/86400)*86400 AS "time", sum(amount) AS "value" FROM entities."order" WHERE placed_at BETWEEN '2025-11-01T00:00:00Z' AND '2025-12-31T00:00:00Z' GROUP BY 1 ORDER BY 1;

-- data: $__timeGroupAlias with a metric column
SELECT floor(extract(epoch from at)/604800)*604800 AS "time", kind AS metric, count(*) AS value FROM entities.event WHERE at BETWEEN '2026-01-01T00:00:00Z' AND '2026-02-01T00:00:00Z' GROUP BY 1, 2 ORDER BY 1, 2;

-- data: $__time of a table
SELECT placed_at AS "time", amount, region FROM entities."order" WHERE placed_at >= '2026-01-01T00:00:00Z' ORDER BY placed_at ASC LIMIT 50;

-- data: variables
SELECT DISTINCT region AS "__text", region AS "__value" FROM entities.customer ORDER BY 1;

-- data: $__unixEpochFilter
SELECT count(*) FROM entities."order" WHERE extract(epoch from placed_at) >= 1762000000 AND extract(epoch from placed_at) <= 1769000000;

-- data: a multi-value variable
SELECT status, avg(amount) FROM entities."order" WHERE region IN ('eu','us') AND status ~ '^(new|paid)$' GROUP BY status ORDER BY status;

-- data: gaps filled in SQL
SELECT g.t AS "time", coalesce(sum(o.amount), 0) AS value FROM generate_series('2025-11-01'::timestamptz, '2025-11-10'::timestamptz, interval '1 day') g(t) LEFT JOIN entities."order" o ON o.placed_at >= g.t AND o.placed_at < g.t + interval '1 day' GROUP BY 1 ORDER BY 1;

-- data: last value for a stat panel
SELECT amount FROM entities."order" ORDER BY placed_at DESC LIMIT 1;

-- data: the builder's rows
SELECT id, status FROM entities."order" LIMIT 50;

-- data: a rate by a window
SELECT date_trunc('day', at) AS time, count(*) - lag(count(*)) OVER (ORDER BY date_trunc('day', at)) AS change FROM entities.event GROUP BY 1 ORDER BY 1;

-- data: a heat map
SELECT date_trunc('hour', at) AS time, width_bucket(seconds, 0, 300, 6) AS bucket, count(*) AS n FROM entities.event WHERE seconds IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 100;
