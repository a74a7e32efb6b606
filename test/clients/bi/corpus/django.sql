-- tool: Django (written, simple)
-- session: connects
SET TIME ZONE 'UTC';
SELECT set_config('TimeZone', 'UTC', false);

-- session: an atomic block with a savepoint
BEGIN;
SAVEPOINT "s1_x1";
SELECT 1;
RELEASE SAVEPOINT "s1_x1";
COMMIT;

-- session: a server-side cursor of iterator()
BEGIN;
DECLARE "_django_curs_1" NO SCROLL CURSOR WITHOUT HOLD FOR SELECT "customer"."id" FROM "customer" ORDER BY 1;
FETCH FORWARD 5 FROM "_django_curs_1";
CLOSE "_django_curs_1";
COMMIT;

-- session: a cursor that outlives its transaction
DECLARE "_django_curs_2" NO SCROLL CURSOR WITH HOLD FOR SELECT "customer"."id" FROM "customer" ORDER BY 1;
FETCH FORWARD 5 FROM "_django_curs_2";
CLOSE "_django_curs_2";

-- introspection: inspectdb: tables
SELECT c.relname, CASE WHEN c.relispartition THEN 'p' WHEN c.relkind IN ('m', 'v') THEN 'v' ELSE 't' END, obj_description(c.oid, 'pg_class') FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1;

-- introspection: inspectdb: columns
SELECT a.attname AS column_name, NOT (a.attnotnull OR (t.typtype = 'd' AND t.typnotnull)) AS is_nullable, pg_get_expr(ad.adbin, ad.adrelid) AS column_default, CASE WHEN collname = 'default' THEN NULL ELSE collname END AS collation, a.attidentity != '' AS is_autofield, col_description(a.attrelid, a.attnum) AS column_comment
FROM pg_attribute a LEFT JOIN pg_attrdef ad ON a.attrelid = ad.adrelid AND a.attnum = ad.adnum LEFT JOIN pg_collation co ON a.attcollation = co.oid JOIN pg_type t ON a.atttypid = t.oid JOIN pg_class c ON a.attrelid = c.oid JOIN pg_namespace n ON c.relnamespace = n.oid
WHERE c.relkind IN ('f', 'm', 'p', 'r', 'v') AND c.relname = 'order' AND n.nspname NOT IN ('pg_catalog', 'pg_toast') AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY a.attnum;

-- introspection: inspectdb: relations
SELECT a1.attname, c2.relname, a2.attname FROM pg_constraint con LEFT JOIN pg_class c1 ON con.conrelid = c1.oid LEFT JOIN pg_class c2 ON con.confrelid = c2.oid LEFT JOIN pg_attribute a1 ON c1.oid = a1.attrelid AND a1.attnum = con.conkey[1] LEFT JOIN pg_attribute a2 ON c2.oid = a2.attrelid AND a2.attnum = con.confkey[1]
WHERE c1.relname = 'order' AND con.contype = 'f' AND c1.relnamespace = c2.relnamespace AND pg_catalog.pg_table_is_visible(c1.oid);

-- introspection: constraints
SELECT c.conname, array(SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, arridx) JOIN pg_attribute AS ca ON cols.colid = ca.attnum WHERE ca.attrelid = c.conrelid ORDER BY cols.arridx), c.contype, (SELECT fkc.relname || '.' || fka.attname FROM pg_attribute AS fka JOIN pg_class AS fkc ON fka.attrelid = fkc.oid WHERE fka.attrelid = c.confrelid AND fka.attnum = c.confkey[1]), cl.reloptions
FROM pg_constraint AS c JOIN pg_class AS cl ON c.conrelid = cl.oid WHERE cl.relname = 'order' AND pg_catalog.pg_table_is_visible(cl.oid) ORDER BY 1;

-- data: select_related
SELECT "order"."id", "order"."amount", "customer"."id", "customer"."name" FROM "order" INNER JOIN "customer" ON ("order"."customer_id" = "customer"."id") WHERE "customer"."region" = 'eu' ORDER BY "order"."id" ASC LIMIT 21;

-- data: prefetch_related
SELECT "order"."id", "order"."customer_id" FROM "order" WHERE "order"."customer_id" IN (1, 2, 4, 5) ORDER BY "order"."id";

-- data: annotate with Count and filter
SELECT "customer"."id", COUNT("order"."id") AS "n", COUNT("order"."id") FILTER (WHERE "order"."status" = 'paid') AS "paid" FROM "customer" LEFT OUTER JOIN "order" ON ("customer"."id" = "order"."customer_id") GROUP BY "customer"."id" HAVING COUNT("order"."id") > 2 ORDER BY "n" DESC, "customer"."id" ASC;

-- data: exclude over a relation
SELECT "customer"."id" FROM "customer" WHERE NOT (EXISTS(SELECT 1 AS "a" FROM "order" U1 WHERE (U1."status" = 'returned' AND U1."customer_id" = ("customer"."id")) LIMIT 1)) ORDER BY 1;

-- data: exists()
SELECT 1 AS "a" FROM "order" WHERE "order"."status" = 'paid' LIMIT 1;

-- data: Subquery and OuterRef
SELECT "customer"."id", (SELECT U0."placed_at" FROM "order" U0 WHERE U0."customer_id" = ("customer"."id") ORDER BY U0."placed_at" DESC LIMIT 1) AS "newest" FROM "customer" ORDER BY "customer"."id";

-- data: date lookups
SELECT "order"."id" FROM "order" WHERE ("order"."placed_at" BETWEEN '2025-01-01 00:00:00+00:00'::timestamptz AND '2025-12-31 23:59:59.999999+00:00'::timestamptz AND EXTRACT(MONTH FROM "order"."placed_at" AT TIME ZONE 'UTC') = 11) ORDER BY 1;

-- data: TruncMonth
SELECT DATE_TRUNC('month', "order"."placed_at" AT TIME ZONE 'UTC') AS "m", SUM("order"."amount") AS "s" FROM "order" GROUP BY 1 ORDER BY 1 ASC;

-- data: case-insensitive lookups
SELECT "customer"."id" FROM "customer" WHERE (UPPER("customer"."name"::text) LIKE UPPER('%a%') OR "customer"."name"::text LIKE 'B%' OR UPPER("customer"."region"::text) = UPPER('Us')) ORDER BY 1;

-- data: JSON lookups
SELECT "event"."id" FROM "event" WHERE (("event"."props" #> '{utm,source}') = '"mail"'::jsonb AND ("event"."props" -> 'score') > '5'::jsonb) ORDER BY 1 LIMIT 10;

-- data: aggregate over a subquery
SELECT AVG("n") FROM (SELECT COUNT("order"."id") AS "n" FROM "order" GROUP BY "order"."customer_id") subquery;

-- data: union
(SELECT "order"."status" AS "col1" FROM "order") UNION (SELECT "event"."kind" AS "col1" FROM "event") ORDER BY 1 ASC;

-- data: window
SELECT "order"."id", ROW_NUMBER() OVER (PARTITION BY "order"."customer_id" ORDER BY "order"."placed_at" DESC) AS "rn" FROM "order" ORDER BY 1;

-- data: dates()
SELECT DISTINCT (DATE_TRUNC('month', "order"."shipped_on"))::date AS "datefield" FROM "order" WHERE ("order"."shipped_on" IS NOT NULL) ORDER BY 1 ASC;

-- data: values_list with F expressions and Coalesce
SELECT ("order"."amount" * (1 - COALESCE("order"."discount", 0.0))) AS "net", ("order"."quantity" + 1) AS "q" FROM "order" ORDER BY "order"."id" LIMIT 10;
