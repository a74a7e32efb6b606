import { list, type Tool } from './shape.js';

export const TABLEAU: Tool = {
  tool: 'Tableau',
  shapes: [
    {
      what: 'aggregate with quoted names and HAVING (COUNT(1) > 0)',
      sql: `SELECT SUM("order"."quantity") AS "sum:quantity:ok", "order"."region" AS "region"
        FROM "entities"."order" "order" GROUP BY 2 HAVING (COUNT(1) > 0)`,
    },
    {
      what: 'a total without dimensions',
      sql: `SELECT SUM("t"."quantity") AS "sum:quantity:ok", AVG(CAST("t"."amount" AS DOUBLE PRECISION)) AS "avg:amount:ok",
        COUNT(DISTINCT "t"."customer_id") AS "ctd:customer_id:ok" FROM "entities"."order" "t" HAVING (COUNT(1) > 0)`,
    },
    {
      what: 'CAST(… AS TEXT) compared with a literal',
      sql: `SELECT "c"."id" FROM "entities"."customer" "c" WHERE (CAST("c"."region" AS TEXT) = 'eu')`,
    },
    { what: 'a bare boolean', sql: `SELECT "s"."id" FROM "entities"."sample" "s" WHERE "s"."flag"` },
    {
      what: 'NOT of a boolean',
      sql: `SELECT "s"."id" FROM "entities"."sample" "s" WHERE (NOT ("s"."flag"))`,
    },
    {
      what: 'TIMESTAMP literals in a range',
      sql: `SELECT "o"."id" FROM "entities"."order" "o" WHERE (("o"."placed_at" >= (TIMESTAMP '2026-01-01 12:00:00.000'))
        AND ("o"."placed_at" <= (TIMESTAMP '2026-01-01 20:00:00.000')))`,
    },
    {
      what: 'DATE literals in a list',
      sql: `SELECT "c"."name" FROM "entities"."customer" "c" WHERE ("c"."born" IN ((DATE '1990-05-17'), (DATE '1979-12-31')))`,
    },
    {
      what: 'CASE in select list and GROUP BY (bins)',
      sql: `SELECT (CASE WHEN ("o"."quantity" < 10) THEN 'small' WHEN ("o"."quantity" < 30) THEN 'middle' ELSE 'large' END) AS "bin",
        SUM("o"."amount") AS "sum:amount:ok" FROM "entities"."order" "o"
        GROUP BY (CASE WHEN ("o"."quantity" < 10) THEN 'small' WHEN ("o"."quantity" < 30) THEN 'middle' ELSE 'large' END)`,
    },
    {
      what: 'CASE inside GROUP BY by position',
      sql: `SELECT (CASE "o"."region" WHEN 'eu' THEN 'Europe' WHEN 'us' THEN 'America' ELSE "o"."region" END) AS "region (group)",
        COUNT(1) AS "cnt" FROM "entities"."order" "o" GROUP BY 1`,
    },
    {
      what: 'numeric bins by FLOOR',
      sql: `SELECT FLOOR("o"."quantity" / 10.0) AS "quantity (bin)", COUNT(1) AS "cnt" FROM "entities"."order" "o" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST`,
    },
    {
      what: 'month by DATE_TRUNC cast to DATE',
      sql: `SELECT CAST(DATE_TRUNC('MONTH', CAST("o"."placed_at" AS DATE)) AS DATE) AS "tmn:placed_at:ok",
        SUM("o"."amount") AS "sum" FROM "entities"."order" "o" GROUP BY 1`,
    },
    {
      what: 'date parts by EXTRACT, cast and FLOOR',
      sql: `SELECT CAST(TRUNC(EXTRACT(YEAR FROM "o"."placed_at")) AS INTEGER) AS "yr:placed_at:ok",
        CAST(TRUNC(EXTRACT(QUARTER FROM "o"."placed_at")) AS INTEGER) AS "qr:placed_at:ok", COUNT(1)
        FROM "entities"."order" "o" GROUP BY 1, 2`,
    },
    {
      what: 'weekday arithmetic',
      sql: `SELECT (1 + CAST(EXTRACT(DOW FROM "o"."placed_at") AS INTEGER)) AS "wd:placed_at:ok", COUNT(1)
        FROM "entities"."order" "o" GROUP BY 1 ORDER BY 1`,
    },
    {
      what: 'interval arithmetic with casts',
      sql: `SELECT DATE_TRUNC('DAY', ("o"."placed_at" + 1 * INTERVAL '1 DAY')) AS "day", COUNT(1) FROM "entities"."order" "o" GROUP BY 1`,
    },
    {
      what: 'top n by a derived table joined on its key',
      sql: `SELECT "c"."name", "t0"."x_measure__0" FROM "entities"."customer" "c"
        INNER JOIN (SELECT "o"."customer_id" AS "customer_id", SUM("o"."amount") AS "x_measure__0" FROM "entities"."order" "o"
          GROUP BY 1 ORDER BY 2 DESC, 1 ASC LIMIT 2) "t0" ON ("c"."id" = "t0"."customer_id")`,
    },
    {
      what: 'custom SQL wrapped in a derived table',
      sql: `SELECT "Custom SQL Query"."region" AS "region", SUM("Custom SQL Query"."amount") AS "sum:amount:ok"
        FROM (select id, region, amount from osl.entities."order" where quantity > 5) "Custom SQL Query" GROUP BY 1`,
    },
    {
      what: 'metadata probe of custom SQL',
      sql: 'SELECT * FROM (select id, region, amount from "order") "Custom SQL Query" LIMIT 0',
    },
    {
      what: 'LEFT JOIN on a key',
      sql: `SELECT "o"."id" AS "id", "c"."name" AS "name" FROM "entities"."order" "o"
        LEFT JOIN "entities"."customer" "c" ON ("o"."customer_id" = "c"."id") ORDER BY 1`,
    },
    {
      what: 'fixed level of detail: a derived table joined back',
      sql: `SELECT "t0"."lod", COUNT(DISTINCT "c"."id") AS "ctd" FROM "entities"."customer" "c"
        INNER JOIN (SELECT "o"."customer_id" AS "customer_id", MIN("o"."placed_at") AS "lod" FROM "entities"."order" "o" GROUP BY 1) "t0"
        ON ("c"."id" = "t0"."customer_id") GROUP BY 1`,
    },
    {
      what: 'string functions of calculated fields',
      sql: `SELECT LOWER(TRIM("c"."name")) AS "a", SUBSTRING("c"."name" FROM 1 FOR 1) AS "b", POSITION('a' IN "c"."name") AS "c",
        LTRIM("c"."name") AS "d", REPLACE("c"."region", 'e', 'E') AS "e", RIGHT("c"."name", 1) AS "f", ("c"."name" || '-' || "c"."region") AS "g"
        FROM "entities"."customer" "c"`,
    },
    {
      what: 'contains, starts with, ends with',
      sql: `SELECT COUNT(1) FROM "entities"."customer" "c" WHERE ((POSITION('d' IN LOWER("c"."name")) > 0)
        OR (LEFT(LTRIM("c"."name"), LENGTH('A')) = 'A') OR (RIGHT(RTRIM("c"."name"), LENGTH('y')) = 'y'))`,
    },
    {
      what: 'null handling',
      sql: `SELECT COALESCE("o"."note", '') AS "note", (CASE WHEN ("o"."note" IS NULL) THEN 1 ELSE 0 END) AS "missing"
        FROM "entities"."order" "o" WHERE (NOT (("o"."note" IS NULL)))`,
    },
    {
      what: 'median',
      sql: `SELECT "o"."region", PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY CAST("o"."quantity" AS DOUBLE PRECISION)) AS "med" FROM "entities"."order" "o" GROUP BY 1`,
    },
    {
      what: 'a parameter list of 500 members',
      sql: `SELECT COUNT(1) AS "cnt" FROM "entities"."order" "o" WHERE ("o"."id" IN (${list(500, (i) => `${i}`)}))`,
    },
    {
      what: 'standard deviations and variances',
      sql: `SELECT ROUND(STDDEV_SAMP("o"."amount"), 6), ROUND(VAR_POP("o"."amount"), 6), ROUND(STDDEV_POP("o"."quantity"), 6) FROM "entities"."order" "o" HAVING (COUNT(1) > 0)`,
    },
    {
      what: 'the connect check with a temporary table',
      sql: 'CREATE LOCAL TEMPORARY TABLE "#Tableau_5_1_CONNECT" ("COL" INTEGER) ON COMMIT PRESERVE ROWS',
      refused: { sqlstate: '25006', because: 'read-only; Tableau falls back to derived tables' },
    },
    {
      what: 'SELECT INTO a temporary table',
      sql: `SELECT * INTO TEMPORARY TABLE "#Tableau_5_2_CONNECT" FROM (SELECT 1 AS COL) AS CHECKTEMP LIMIT 1`,
      refused: { sqlstate: '25006', because: 'read-only; Tableau falls back to derived tables' },
    },
  ],
};
