-- tool: Metabase (written, extended)
-- session: connects and checks
SET SESSION TIMEZONE TO 'UTC';
SELECT 1;

-- session: the report time zone for one transaction
BEGIN READ ONLY;
SET LOCAL TIME ZONE 'Europe/Berlin';
SELECT DATE_TRUNC('day', "entities"."order"."placed_at") AS "d" FROM "entities"."order" WHERE "entities"."order"."id" = 2;
ROLLBACK;

-- session: cancels by the protocol, reads by a cursor
SET extra_float_digits = 3;
SET application_name = 'Metabase v0.50';

-- data: joined to a question
SELECT "source"."region" AS "region", "Q"."n" AS "Q__n" FROM (SELECT "entities"."customer"."id" AS "id", "entities"."customer"."region" AS "region" FROM "entities"."customer") AS "source" LEFT JOIN (SELECT "entities"."order"."customer_id" AS "customer_id", COUNT(*) AS "n" FROM "entities"."order" GROUP BY "entities"."order"."customer_id") AS "Q" ON "source"."id" = "Q"."customer_id" ORDER BY "source"."id" ASC LIMIT 2000;

-- data: two joins
SELECT "Customer"."name" AS "n", SUM("Payment"."paid") AS "s" FROM "entities"."order" LEFT JOIN "entities"."customer" AS "Customer" ON "entities"."order"."customer_id" = "Customer"."id" LEFT JOIN "entities"."payment" AS "Payment" ON "entities"."order"."id" = "Payment"."order_id" WHERE "entities"."order"."status" = 'paid' GROUP BY "Customer"."name" ORDER BY "Customer"."name" ASC;

-- data: a full join of the notebook
SELECT "a"."id" AS "id", "b"."customer_id" AS "c" FROM "entities"."customer" AS "a" FULL JOIN "entities"."subscription" AS "b" ON "a"."id" = "b"."customer_id" ORDER BY 1, 2, "b"."id";

-- data: a join on dates
SELECT COUNT(*) AS "count" FROM "entities"."order" LEFT JOIN "entities"."event" AS "E" ON DATE_TRUNC('day', "entities"."order"."placed_at") = DATE_TRUNC('day', "E"."at");

-- data: a join by greater or equal
SELECT "entities"."product"."id", COUNT("P"."id") AS "n" FROM "entities"."product" LEFT JOIN "entities"."product" AS "P" ON "entities"."product"."price" >= "P"."price" GROUP BY "entities"."product"."id" ORDER BY 1;

-- data: share of rows
-- values: ["paid"]
SELECT CAST(SUM(CASE WHEN "entities"."order"."status" = $1 THEN 1 ELSE 0.0 END) AS DOUBLE PRECISION) / NULLIF(COUNT(*), 0) AS "share" FROM "entities"."order";

-- data: bins of a field
SELECT FLOOR(("entities"."order"."amount" / 50.0)) * 50.0 AS "amount", COUNT(*) AS "count" FROM "entities"."order" GROUP BY FLOOR(("entities"."order"."amount" / 50.0)) * 50.0 ORDER BY 1 ASC;

-- data: JSON unfolded
SELECT ("entities"."event"."props"#>> ARRAY['utm','source'])::text AS "source", CAST("entities"."event"."props"#>> ARRAY['score'] AS bigint) AS "score" FROM "entities"."event" WHERE ("entities"."event"."props"#>> ARRAY['page'])::text = '/p/3' ORDER BY "entities"."event"."id" LIMIT 10;

-- data: an actions row by its key
-- values: ["3"]
SELECT "entities"."customer".* FROM "entities"."customer" WHERE "entities"."customer"."id" = $1::integer;

-- data: week of year and quarter
SELECT CEIL((CAST(EXTRACT(doy FROM CAST(DATE_TRUNC('week', ("entities"."order"."placed_at" + INTERVAL '1 day')) AS timestamp)) AS integer) / 7.0)) AS "w", EXTRACT(quarter FROM "entities"."order"."placed_at") AS "q", COUNT(*) FROM "entities"."order" GROUP BY 1, 2 ORDER BY 1, 2;

-- data: between two times
SELECT (EXTRACT(DAY FROM AGE(CAST('2026-01-10' AS timestamp), CAST('2026-01-01' AS timestamp)))) AS "d", CAST(EXTRACT(EPOCH FROM (CAST('2026-01-10' AS timestamp) - CAST('2026-01-01' AS timestamp))) / 86400 AS INTEGER) AS "e";

-- data: search of filter values
SELECT "entities"."customer"."name" AS "name" FROM "entities"."customer" WHERE (LOWER("entities"."customer"."name") LIKE '%i%') GROUP BY "entities"."customer"."name" ORDER BY "entities"."customer"."name" ASC LIMIT 1000;

-- data: percentile and standard deviation
SELECT PERCENTILE_CONT(0.9) within group (order by "entities"."order"."amount") AS "p90", STDDEV_POP("entities"."order"."quantity") AS "sd", VAR_POP("entities"."order"."quantity") AS "v" FROM "entities"."order";
