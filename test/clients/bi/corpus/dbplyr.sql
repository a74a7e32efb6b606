-- tool: R (dbplyr) and pandas (written, extended)
-- session: RPostgres connects
SET datestyle to iso, mdy;
SET client_encoding TO 'UTF8';

-- introspection: does a table exist
-- values: ["customer"]
SELECT COUNT(*) AS nrows FROM (SELECT i.table_schema, i.table_name FROM INFORMATION_SCHEMA.tables i WHERE i.table_name = $1 AND i.table_schema = ANY (current_schemas(true))) t;

-- introspection: types of extensions
SELECT oid, typname FROM pg_type WHERE typname IN ('bool', 'int8', 'json') ORDER BY 1;

-- data: the columns of a lazy table
SELECT * FROM "customer" AS "q01" WHERE (0 = 1);

-- data: head
SELECT "order".* FROM "order" ORDER BY "id" LIMIT 6;

-- data: filter, mutate, summarise
SELECT "region", AVG("net") AS "mean", COUNT(*) AS "n" FROM (SELECT "q01".*, "amount" * 0.9 AS "net" FROM (SELECT "order".* FROM "order" WHERE ("quantity" > 3.0)) AS "q01") AS "q01" GROUP BY "region" ORDER BY 1;

-- data: inner_join
SELECT "order"."id" AS "id", "customer_id", "name" FROM "order" INNER JOIN "customer" ON ("order"."customer_id" = "customer"."id") ORDER BY 1;

-- data: semi_join and anti_join
SELECT "customer"."id" FROM "customer" WHERE EXISTS (SELECT 1 FROM "event" WHERE ("customer"."id" = "event"."customer_id")) AND NOT EXISTS (SELECT 1 FROM "subscription" WHERE ("customer"."id" = "subscription"."customer_id")) ORDER BY 1;

-- data: full_join
SELECT COALESCE("a"."region", "b"."region") AS "region", "n", "m" FROM (SELECT "region", COUNT(*) AS "n" FROM "order" GROUP BY "region") AS "a" FULL JOIN (SELECT "region", COUNT(*) AS "m" FROM "event" GROUP BY "region") AS "b" ON ("a"."region" = "b"."region") ORDER BY 1;

-- data: cross_join
SELECT "a"."region", "b"."status" FROM (SELECT DISTINCT "region" FROM "order") AS "a" CROSS JOIN (SELECT DISTINCT "status" FROM "order") AS "b" ORDER BY 1, 2;

-- data: slice_max in groups
SELECT "id", "customer_id", "amount" FROM (SELECT "order".*, RANK() OVER (PARTITION BY "customer_id" ORDER BY "amount" DESC) AS "col01" FROM "order") AS "q01" WHERE ("col01" <= 1) ORDER BY 1;

-- data: case_when and if_else
SELECT "id", CASE WHEN ("quantity" < 10.0) THEN 'small' WHEN ("quantity" >= 10.0) THEN 'big' END AS "size", CASE WHEN ("status" = 'paid') THEN 1.0 WHEN NOT ("status" = 'paid') THEN 0.0 END AS "paid" FROM "order" ORDER BY 1;

-- data: cumulative
SELECT "id", SUM("amount") OVER (ORDER BY "id" ROWS UNBOUNDED PRECEDING) AS "cum" FROM "order" ORDER BY 1;

-- data: lubridate
SELECT EXTRACT(YEAR FROM "placed_at") AS "y", EXTRACT(MONTH FROM "placed_at") AS "m", DATE_TRUNC('week', "placed_at") AS "w", "placed_at"::date AS "d" FROM "order" ORDER BY "id" LIMIT 5;

-- data: stringr
SELECT SUBSTR("name", 1, 2) AS "a", STRPOS("name", 'a') > 0 AS "b", REGEXP_REPLACE("name", 'a', 'b', 'g') AS "c", LOWER("name") AS "d", "name" || '_' || "region" AS "e" FROM "customer" ORDER BY "id";

-- data: pivot_wider
SELECT "region", MAX(CASE WHEN ("status" = 'new') THEN "n" END) AS "new", MAX(CASE WHEN ("status" = 'paid') THEN "n" END) AS "paid" FROM (SELECT "region", "status", COUNT(*) AS "n" FROM "order" GROUP BY "region", "status") AS "q01" GROUP BY "region" ORDER BY 1;

-- data: distinct and count
SELECT COUNT(*) AS "n" FROM (SELECT DISTINCT "region", "status" FROM "order") AS "q01";

-- data: median and quantile
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "amount") AS "median", PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY "amount") AS "q90" FROM "order";

-- data: row_number without an order
SELECT COUNT(*) FROM (SELECT "q".*, ROW_NUMBER() OVER () AS "rn" FROM "order" AS "q") AS "q01" WHERE ("rn" % 10 = 0);

-- data: union_all
SELECT "status" AS "s" FROM "order" UNION ALL SELECT "kind" AS "s" FROM "event" ORDER BY 1 LIMIT 20;

-- data: pandas read_sql with parameters
-- values: ["2025-11-01", "2025-12-01"]
select id, amount from "order" where placed_at >= $1 and placed_at < $2 order by id;
