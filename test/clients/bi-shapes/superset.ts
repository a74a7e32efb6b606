import type { Tool } from './shape.js';

export const SUPERSET: Tool = {
  tool: 'Superset',
  shapes: [
    {
      what: 'weeks by DATE_TRUNC, a TO_TIMESTAMP range, a limit',
      sql: `SELECT DATE_TRUNC('week', placed_at) AS __timestamp, region AS region, sum(amount) AS "SUM(amount)"
        FROM entities."order" WHERE placed_at >= TO_TIMESTAMP('2026-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
        AND placed_at < TO_TIMESTAMP('2026-02-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
        GROUP BY DATE_TRUNC('week', placed_at), region ORDER BY "SUM(amount)" DESC LIMIT 10000`,
    },
    {
      what: 'row count of a limited query',
      sql: `SELECT COUNT(*) AS rowcount FROM (SELECT region AS region, quantity AS quantity FROM entities."order" LIMIT 50000) AS rowcount_qry`,
    },
    {
      what: 'count(*) with an ILIKE filter',
      sql: `SELECT count(*) AS count FROM entities.customer WHERE name ILIKE '%a%' LIMIT 50000`,
    },
    {
      what: 'series limit: the top groups joined back',
      sql: `SELECT DATE_TRUNC('day', placed_at) AS __timestamp, customer_id AS customer_id, COUNT(*) AS count FROM entities."order"
        JOIN (SELECT customer_id AS customer_id__, COUNT(*) AS mme_inner__ FROM entities."order" GROUP BY customer_id
          ORDER BY mme_inner__ DESC, 1 LIMIT 3) AS series_limit ON customer_id = customer_id__
        GROUP BY DATE_TRUNC('day', placed_at), customer_id ORDER BY count DESC, customer_id, __timestamp LIMIT 1000`,
    },
    {
      what: 'a virtual data set',
      sql: `SELECT region AS region, MAX(total) AS "MAX(total)" FROM (SELECT region, customer_id, sum(amount) AS total FROM "order" GROUP BY 1, 2) AS virtual_table
        GROUP BY region ORDER BY "MAX(total)" DESC LIMIT 1000`,
    },
    {
      what: 'a virtual data set with a CTE',
      sql: `WITH totals AS (SELECT customer_id, sum(amount) AS total FROM "order" GROUP BY customer_id)
        SELECT count(*) AS count, sum(total) AS "SUM(total)" FROM totals WHERE total > 100.5 LIMIT 1000`,
    },
    {
      what: 'distinct values of a filter box',
      sql: `SELECT region AS region FROM entities.customer GROUP BY region ORDER BY region ASC LIMIT 10000`,
    },
    {
      what: 'time range of a filter',
      sql: `SELECT MIN(placed_at) AS "MIN(placed_at)", MAX(placed_at) AS "MAX(placed_at)" FROM entities."order"`,
    },
    {
      what: 'a dotted five-minute grain',
      sql: `SELECT DATE_TRUNC('minute', placed_at) - (EXTRACT(MINUTE FROM placed_at)::int % 5) * INTERVAL '1 minute' AS __timestamp, COUNT(*) AS count
        FROM entities."order" GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'quarters and week endings',
      sql: `SELECT DATE_TRUNC('quarter', placed_at) AS q, DATE_TRUNC('week', placed_at) + INTERVAL '6 days' AS w, COUNT(*) FROM entities."order" GROUP BY 1, 2`,
    },
    {
      what: 'IN, NOT IN and IS NOT NULL filters',
      sql: `SELECT id AS id FROM entities."order" WHERE region IN ('eu', 'us') AND customer_id NOT IN (1, 2) AND note IS NOT NULL LIMIT 1000`,
    },
    {
      what: 'NaN-safe ratio metric',
      sql: `SELECT region, sum(amount) / NULLIF(count(*), 0) AS ratio, CAST(sum(quantity) AS FLOAT) / 2 AS half FROM "order" GROUP BY region ORDER BY ratio DESC`,
    },
    {
      what: 'COUNT DISTINCT metrics with FILTER',
      sql: `SELECT COUNT(DISTINCT customer_id) AS "COUNT_DISTINCT(customer_id)", COUNT(*) FILTER (WHERE region = 'eu') AS eu FROM "order"`,
    },
    {
      what: 'the table preview',
      sql: 'SELECT id, name, email, region FROM entities.customer LIMIT 100 OFFSET 0',
    },
    {
      what: 'percentiles of a box plot',
      sql: `SELECT region, percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY quantity) AS quartiles,
        percentile_disc(0.5) WITHIN GROUP (ORDER BY quantity) AS median, mode() WITHIN GROUP (ORDER BY customer_id) AS mode FROM "order" GROUP BY region`,
    },
    {
      what: 'epoch seconds as a time column',
      sql: `SELECT DATE_TRUNC('hour', to_timestamp(EXTRACT(EPOCH FROM placed_at)::double precision)) AS __timestamp, COUNT(*) FROM "order" GROUP BY 1`,
    },
  ],
};
