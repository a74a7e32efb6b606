-- tool: Tableau (written, simple)
-- session: connects
SET DateStyle = 'ISO';
SET extra_float_digits = 2;
SET client_encoding TO 'UTF8';
SHOW max_identifier_length;

-- session: probes for temporary tables, and continues without
-- refused: the gateway never writes, not even temporary tables; Tableau falls back to subqueries
CREATE LOCAL TEMPORARY TABLE "#Tableau_1_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS;

-- session: an extract in a cursor
BEGIN;
declare "SQL_CUR0x1" cursor for SELECT "order"."id" AS "id", "order"."amount" AS "amount" FROM "entities"."order" "order" ORDER BY 1;
fetch 100 in "SQL_CUR0x1";
fetch 100 in "SQL_CUR0x1";
close "SQL_CUR0x1";
commit;

-- session: time zone of the workbook
SET TIME ZONE 'America/Chicago';
SELECT DATE_TRUNC( 'DAY', "order"."placed_at" ) AS "day" FROM "entities"."order" "order" WHERE "order"."id" = 1;

-- data: level of detail, include
SELECT "t0"."region" AS "region", AVG("t0"."x_measure__1") AS "avg" FROM (SELECT "order"."region" AS "region", "order"."customer_id" AS "customer_id", SUM("order"."amount") AS "x_measure__1" FROM "entities"."order" "order" GROUP BY 1, 2) "t0" GROUP BY 1;

-- data: level of detail, fixed, compared with a sum
SELECT "order"."region" AS "region", SUM("order"."amount") AS "s", MIN("t1"."total") AS "total" FROM "entities"."order" "order" CROSS JOIN (SELECT SUM("order"."amount") AS "total" FROM "entities"."order" "order" HAVING (COUNT(1) > 0)) "t1" GROUP BY 1;

-- data: relative dates
SELECT COUNT(1) AS "cnt" FROM "entities"."order" "order" WHERE (("order"."placed_at" >= (DATE_TRUNC('YEAR', (TIMESTAMP '2026-01-15 00:00:00')) + (-1 * INTERVAL '1 YEAR'))) AND ("order"."placed_at" < (DATE_TRUNC('YEAR', (TIMESTAMP '2026-01-15 00:00:00')) + (1 * INTERVAL '1 YEAR'))));

-- data: a set: top customers by IN
SELECT "order"."customer_id" AS "customer_id", SUM("order"."amount") AS "s" FROM "entities"."order" "order" INNER JOIN (SELECT "order"."customer_id" AS "customer_id", SUM("order"."amount") AS "$__alias__0" FROM "entities"."order" "order" GROUP BY 1 ORDER BY 2 DESC LIMIT 3) "t0" ON ("order"."customer_id" = "t0"."customer_id") GROUP BY 1;

-- data: null-safe join of a level of detail
SELECT "product"."category_id", "t0"."m" FROM "entities"."product" "product" INNER JOIN (SELECT "product"."category_id" AS "category_id", MAX("product"."price") AS "m" FROM "entities"."product" "product" GROUP BY 1) "t0" ON (("product"."category_id" = "t0"."category_id") OR (("product"."category_id" IS NULL) AND ("t0"."category_id" IS NULL)));

-- data: null-safe join by IS NOT DISTINCT FROM
SELECT "order"."note" AS "note", "t0"."n" AS "n" FROM "entities"."order" "order" INNER JOIN (SELECT "order"."note" AS "note", COUNT(1) AS "n" FROM "entities"."order" "order" GROUP BY 1) "t0" ON ("order"."note" IS NOT DISTINCT FROM "t0"."note");

-- data: relationships of logical tables: a full outer match
SELECT COALESCE("a"."id", "b"."customer_id") AS "k", "a"."n", "b"."s" FROM (SELECT "customer"."id" AS "id", COUNT(1) AS "n" FROM "entities"."customer" "customer" GROUP BY 1) "a" FULL JOIN (SELECT "order"."customer_id" AS "customer_id", SUM("order"."amount") AS "s" FROM "entities"."order" "order" GROUP BY 1) "b" ON ("a"."id" = "b"."customer_id");

-- data: weeks that start on Sunday
SELECT CAST(DATE_TRUNC('DAY', "order"."placed_at") AS DATE) + CAST(- CAST(EXTRACT(DOW FROM "order"."placed_at") AS INTEGER) AS INTEGER) AS "twk", COUNT(1) AS "cnt" FROM "entities"."order" "order" GROUP BY 1;

-- data: parse and format
SELECT TO_CHAR("order"."placed_at", 'YYYY-MM') AS "ym", CAST("order"."amount" AS TEXT) AS "txt", CAST(CAST("order"."quantity" AS TEXT) AS BIGINT) AS "n" FROM "entities"."order" "order" LIMIT 5 OFFSET 155;

-- data: the count of a domain
SELECT COUNT(DISTINCT "order"."status") AS "ctd", (CASE WHEN COUNT(1) = 0 THEN NULL ELSE MAX("order"."amount") END) AS "m" FROM "entities"."order" "order";

-- data: multi-row filter as an IN of pairs
SELECT COUNT(1) FROM "entities"."order" "order" WHERE ((("order"."region" = 'eu') AND ("order"."status" = 'paid')) OR (("order"."region" = 'us') AND ("order"."status" = 'new')));
