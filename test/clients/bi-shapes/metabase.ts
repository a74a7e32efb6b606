import type { Tool } from './shape.js';

export const METABASE: Tool = {
  tool: 'Metabase',
  shapes: [
    {
      what: 'schema-qualified columns',
      sql: `SELECT "entities"."order"."id" AS "id", "entities"."order"."region" AS "region" FROM "entities"."order" ORDER BY "entities"."order"."id" ASC LIMIT 2000`,
    },
    {
      what: 'catalog-qualified columns',
      sql: `SELECT "osl"."entities"."customer"."id" AS "id" FROM "osl"."entities"."customer" WHERE "osl"."entities"."customer"."region" = 'eu'`,
    },
    {
      what: 'a fingerprint by SUBSTRING',
      sql: `SELECT SUBSTRING("entities"."customer"."name", 1, 1234) AS "substring1", "entities"."customer"."id" AS "id" FROM "entities"."customer" LIMIT 10000`,
    },
    {
      what: 'the table check',
      sql: `SELECT TRUE AS "_" FROM "entities"."customer" WHERE 1 <> 1 LIMIT 0`,
    },
    {
      what: 'pivot grouping',
      sql: `SELECT "entities"."order"."region" AS "region", ABS(0) AS "pivot-grouping", COUNT(*) AS "count" FROM "entities"."order"
        GROUP BY "entities"."order"."region", ABS(0) ORDER BY "entities"."order"."region" ASC, ABS(0) ASC`,
    },
    {
      what: 'months in a source',
      sql: `SELECT DATE_TRUNC('month', "source"."placed_at") AS "placed_at", COUNT(*) AS "count" FROM (
        SELECT "entities"."order"."id" AS "id", "entities"."order"."placed_at" AS "placed_at" FROM "entities"."order" WHERE "entities"."order"."quantity" > 3) AS "source"
        GROUP BY DATE_TRUNC('month', "source"."placed_at") ORDER BY DATE_TRUNC('month', "source"."placed_at") ASC`,
    },
    {
      what: 'a join with an alias of blanks',
      sql: `SELECT "Customer"."region" AS "Customer__region", COUNT(*) AS "count" FROM "entities"."order"
        LEFT JOIN "entities"."customer" AS "Customer" ON "entities"."order"."customer_id" = "Customer"."id"
        GROUP BY "Customer"."region" ORDER BY "Customer"."region" ASC`,
    },
    {
      what: 'day of week with offset',
      sql: `SELECT (CAST(EXTRACT(dow FROM "entities"."order"."placed_at") AS integer) + 1) AS "placed_at", COUNT(*) AS "count"
        FROM "entities"."order" GROUP BY 1 ORDER BY 1 ASC`,
    },
    {
      what: 'relative dates by NOW() and intervals',
      sql: `SELECT COUNT(*) AS "count" FROM "entities"."order" WHERE "entities"."order"."placed_at" >= DATE_TRUNC('day', NOW() + INTERVAL '-30000 day')
        AND "entities"."order"."placed_at" < DATE_TRUNC('day', NOW() + INTERVAL '30000 day')`,
    },
    {
      what: 'timestamps with a zone in the literal',
      sql: `SELECT COUNT(*) AS "count" FROM "entities"."order" WHERE "entities"."order"."placed_at" >= timestamp with time zone '2026-01-01 12:00:00.000Z'
        AND "entities"."order"."placed_at" < timestamp with time zone '2026-01-02 00:00:00.000Z'`,
    },
    {
      what: 'report time zone',
      sql: `SELECT CAST(DATE_TRUNC('day', ("entities"."order"."placed_at" AT TIME ZONE 'Europe/Berlin')) AS date) AS "day", COUNT(*) AS "count"
        FROM "entities"."order" GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'case-insensitive search',
      sql: `SELECT "entities"."customer"."name" FROM "entities"."customer" WHERE (LOWER("entities"."customer"."name") LIKE '%a%') LIMIT 100`,
    },
    {
      what: 'number bins',
      sql: `SELECT (FLOOR((("entities"."order"."quantity" - 0.0) / 12.5)) * 12.5) + 0.0 AS "quantity", COUNT(*) AS "count" FROM "entities"."order" GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'custom expression with CASE and sum',
      sql: `SELECT SUM(CASE WHEN "entities"."order"."region" = 'eu' THEN 1 ELSE 0.0 END) AS "share",
        CAST(SUM(CASE WHEN "entities"."order"."region" = 'eu' THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(COUNT(*), 0) AS "share2" FROM "entities"."order"`,
    },
    {
      what: 'cumulative sum by a window over an aggregate',
      sql: `SELECT DATE_TRUNC('day', "o"."placed_at") AS "day", SUM(SUM("o"."amount")) OVER (ORDER BY DATE_TRUNC('day', "o"."placed_at") ASC ROWS UNBOUNDED PRECEDING) AS "sum"
        FROM "entities"."order" AS "o" GROUP BY DATE_TRUNC('day', "o"."placed_at") ORDER BY 1`,
    },
    {
      what: 'offset by LAG over an aggregate',
      sql: `SELECT "o"."region", COUNT(*) AS c, LAG(COUNT(*), 1) OVER (ORDER BY "o"."region" ASC) AS "previous" FROM "entities"."order" AS "o" GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'median of a column',
      sql: `SELECT PERCENTILE_CONT(0.5) within group (order by "entities"."order"."quantity") AS "median" FROM "entities"."order"`,
    },
    {
      what: 'regular expression extract and concat',
      sql: `SELECT SUBSTRING("entities"."customer"."name" FROM '^[A-Z]') AS "first", CONCAT("entities"."customer"."name", ' ', "entities"."customer"."region") AS "c" FROM "entities"."customer"`,
    },
    {
      what: 'date difference',
      sql: `SELECT CAST("o"."placed_at" AS date) - CAST(timestamp with time zone '2025-12-30 00:00:00+00' AS date) AS "days",
        (EXTRACT(EPOCH FROM ("o"."placed_at" - timestamp with time zone '2025-12-30 00:00:00+00')) / 3600)::bigint AS "hours" FROM "entities"."order" "o"`,
    },
    {
      what: 'a comment in front',
      sql: `-- Metabase:: userID: 1 queryType: MBQL queryHash: 00ff
        SELECT COUNT(*) AS "count" FROM "entities"."order"`,
    },
    {
      what: 'field values',
      sql: `SELECT "entities"."customer"."region" AS "region" FROM "entities"."customer" GROUP BY "entities"."customer"."region" ORDER BY "entities"."customer"."region" ASC LIMIT 1001`,
    },
    {
      what: 'field statistics',
      sql: `SELECT COUNT(DISTINCT "entities"."customer"."region") AS "a", AVG(LENGTH("entities"."customer"."name")) AS "b", MIN("entities"."customer"."born") AS "c" FROM "entities"."customer"`,
    },
    {
      what: 'row numbers of a pivot',
      sql: `SELECT * FROM (SELECT "o"."region" AS "region", "o"."id" AS "id", ROW_NUMBER() OVER (PARTITION BY "o"."region" ORDER BY "o"."amount" DESC) AS "rn" FROM "entities"."order" "o") AS "t" WHERE "t"."rn" <= 2 ORDER BY "region", "rn"`,
    },
  ],
};
