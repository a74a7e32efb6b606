import { list, type Tool } from './shape.js';

const second = (i: number): string =>
  `CAST('2026-01-01 ${String(i % 24).padStart(2, '0')}:00:00' AS TIMESTAMP)`;

export const LOOKER_STUDIO: Tool = {
  tool: 'Looker Studio',
  shapes: [
    {
      what: 'seconds by DATE_TRUNC',
      sql: `SELECT DATE_TRUNC('SECOND', t0.placed_at) AS "qt_abc", SUM(t0.quantity) AS "qt_def" FROM (SELECT * FROM entities."order") AS t0 GROUP BY "qt_abc" ORDER BY "qt_abc" ASC LIMIT 2000001`,
    },
    {
      what: 'hundreds of timestamp casts in an IN list',
      sql: `SELECT COUNT(1) AS "qt_n" FROM entities."order" AS t0 WHERE DATE_TRUNC('SECOND', t0.placed_at::timestamp) IN (${list(300, second)})`,
    },
    {
      what: 'hundreds of timestamp literals in an IN list',
      sql: `SELECT COUNT(1) AS "qt_n" FROM entities."order" AS t0 WHERE t0.placed_at IN (${list(300, (i) => `TIMESTAMP WITH TIME ZONE '2026-01-01 ${String(i % 24).padStart(2, '0')}:00:00+00'`)})`,
    },
    {
      what: 'a date as text',
      sql: `SELECT TO_CHAR(t0.placed_at, 'YYYYMMDD') AS "qt_day", COUNT(DISTINCT t0.customer_id) AS "qt_c" FROM entities."order" AS t0 GROUP BY 1 ORDER BY "qt_c" DESC NULLS LAST, 1`,
    },
    {
      what: 'case-insensitive text filters',
      sql: `SELECT t0.name AS "qt_n" FROM entities.customer AS t0 WHERE (CAST(t0.name AS TEXT) ~* 'a' AND NOT (t0.region ~ '^x'))`,
    },
    {
      what: 'grand totals',
      sql: `SELECT SUM(t0.amount) AS "qt_1", COUNT(1) AS "qt_2" FROM entities."order" AS t0 WHERE (t0.region IS NOT NULL AND t0.region <> '')`,
    },
    {
      what: 'a probe that yields no row',
      sql: 'SELECT * FROM (SELECT id, name FROM entities.customer) AS t0 LIMIT 0',
    },
  ],
};

export const LOOKER: Tool = {
  tool: 'Looker',
  shapes: [
    {
      what: 'dimension, measure, HAVING, FETCH NEXT',
      sql: `SELECT orders.region AS "orders.region", COUNT(*) AS "orders.count", COALESCE(SUM(orders.amount), 0) AS "orders.total"
        FROM "entities"."order" AS orders GROUP BY 1 HAVING NOT (COUNT(*) = 0) ORDER BY 2 DESC, 1 FETCH NEXT 500 ROWS ONLY`,
    },
    {
      what: 'a time dimension in a zone',
      sql: `SELECT TO_CHAR(DATE_TRUNC('week', orders.placed_at::timestamptz AT TIME ZONE 'UTC' AT TIME ZONE 'America/Los_Angeles'), 'YYYY-MM-DD') AS "orders.week",
        COUNT(DISTINCT orders.id) AS "n" FROM "entities"."order" AS orders GROUP BY 1 ORDER BY 1 DESC`,
    },
    {
      what: 'tiers',
      sql: `SELECT CASE WHEN orders.quantity < 10 THEN 'Below 10' WHEN orders.quantity >= 10 AND orders.quantity < 20 THEN '10 to 19' WHEN orders.quantity >= 20 THEN '20 or Above' ELSE 'Undefined' END AS "tier",
        CASE WHEN orders.quantity < 10 THEN '0' WHEN orders.quantity >= 10 AND orders.quantity < 20 THEN '1' WHEN orders.quantity >= 20 THEN '2' ELSE '3' END AS "tier__sort_", COUNT(*) AS "n"
        FROM "entities"."order" AS orders GROUP BY 1, 2 ORDER BY 2`,
    },
    {
      what: 'a pivot by DENSE_RANK over a CTE',
      sql: `SELECT * FROM (SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) AS z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) AS z__pivot_col_ordering FROM (
        SELECT *, MIN(z___rank) OVER (PARTITION BY "region") AS z___min_rank FROM (
        SELECT *, RANK() OVER (ORDER BY CASE WHEN z__pivot_col_rank = 1 THEN (CASE WHEN "n" IS NOT NULL THEN 0 ELSE 1 END) ELSE 2 END, CASE WHEN z__pivot_col_rank = 1 THEN "n" ELSE NULL END DESC, "n" DESC, z__pivot_col_rank, "region") AS z___rank FROM (
        SELECT *, DENSE_RANK() OVER (ORDER BY CASE WHEN "customer" IS NULL THEN 1 ELSE 0 END, "customer") AS z__pivot_col_rank FROM (
        SELECT orders.customer_id AS "customer", orders.region AS "region", COUNT(*) AS "n" FROM "entities"."order" AS orders GROUP BY 1, 2) ww) bb) aa) xx) zz
        WHERE (z__pivot_col_rank <= 50 OR "n" IS NOT NULL) AND (z___pivot_row_rank <= 500 OR z__pivot_col_ordering = 1) ORDER BY z___pivot_row_rank, "customer"`,
    },
    {
      what: 'a date filter by intervals',
      sql: `SELECT COUNT(*) AS n FROM "entities"."order" AS orders WHERE ((orders.placed_at) >= ((SELECT (DATE_TRUNC('day', timestamptz '2026-01-02 00:00:00+00' AT TIME ZONE 'UTC') + (-1 || ' day')::INTERVAL))) AND orders.placed_at < (SELECT DATE_TRUNC('day', timestamptz '2026-01-03 00:00:00+00')))`,
    },
    {
      what: 'a derived table in WITH',
      sql: `WITH facts AS (SELECT customer_id, MIN(placed_at) AS first, COUNT(*) AS n FROM "entities"."order" GROUP BY 1)
        SELECT customers.region, AVG(facts.n) AS "avg" FROM "entities"."customer" AS customers LEFT JOIN facts ON customers.id = facts.customer_id GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'suggestions',
      sql: `SELECT DISTINCT customers.region AS "customers.region" FROM "entities"."customer" AS customers WHERE (customers.region ILIKE 'E%') ORDER BY 1 FETCH FIRST 1000 ROWS ONLY`,
    },
    {
      what: 'a symmetric sum and average over a join',
      sql: `SELECT customers.region AS "customers.region",
        COALESCE(CAST( ( SUM(DISTINCT (CAST(FLOOR(COALESCE(orders.quantity ,0)*(1000000*1.0)) AS DECIMAL(65,0))) + ('x' || MD5(orders.id::varchar))::bit(64)::bigint::DECIMAL(65)*18446744073709551616 + ('x' || SUBSTR(MD5(orders.id::varchar),17))::bit(64)::bigint::DECIMAL(65) ) - SUM(DISTINCT ('x' || MD5(orders.id::varchar))::bit(64)::bigint::DECIMAL(65)*18446744073709551616 + ('x' || SUBSTR(MD5(orders.id::varchar),17))::bit(64)::bigint::DECIMAL(65)) ) AS DOUBLE PRECISION) / CAST((1000000*1.0) AS DOUBLE PRECISION), 0) AS "orders.total",
        COUNT(DISTINCT orders.id) AS "orders.count"
        FROM "entities"."order" AS orders LEFT JOIN "entities"."customer" AS customers ON orders.customer_id = customers.id GROUP BY 1 ORDER BY 2 DESC FETCH NEXT 500 ROWS ONLY`,
    },
    {
      what: 'list of unique values',
      sql: `SELECT STRING_AGG(DISTINCT CAST(orders.region AS VARCHAR), '|RECORD|' ORDER BY CAST(orders.region AS VARCHAR)) AS "list", ARRAY_AGG(orders.id ORDER BY orders.id DESC) AS ids FROM "entities"."order" AS orders`,
    },
  ],
};
