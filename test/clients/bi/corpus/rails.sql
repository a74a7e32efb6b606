-- tool: Rails (ActiveRecord) (written, extended)
-- session: connects
SET client_min_messages TO 'warning';
SET standard_conforming_strings = on;
SET SESSION timezone TO 'UTC';
SET intervalstyle = iso_8601;

-- session: asks for settings
SHOW max_identifier_length;
SHOW search_path;
SELECT current_schemas(false);

-- session: an advisory lock of migrations
-- refused: a lock on the server would block others; only migrations need it, and they write
SELECT pg_try_advisory_lock(4160000000000000001);

-- introspection: the type map
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'bool', 'date', 'timestamp', 'timestamptz', 'numeric', 'uuid', 'jsonb') ORDER BY 1;

-- introspection: columns
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"customer"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;

-- introspection: primary keys
SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"order"'::regclass AND indisprimary) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx;

-- introspection: foreign keys
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable FROM pg_constraint c JOIN pg_class t1 ON c.conrelid = t1.oid JOIN pg_class t2 ON c.confrelid = t2.oid JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid JOIN pg_namespace t3 ON c.connamespace = t3.oid WHERE c.contype = 'f' AND t1.relname = 'order' AND t3.nspname = ANY (current_schemas(false)) ORDER BY c.conname;

-- introspection: tables
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','p') ORDER BY 1;

-- introspection: extensions and enums
SELECT type.typname AS name, type.OID > 0 AS oid, n.nspname AS schema, array_agg(enum.enumlabel ORDER BY enum.enumsortorder) AS value FROM pg_enum AS enum JOIN pg_type AS type ON (type.oid = enum.enumtypid) JOIN pg_namespace n ON type.typnamespace = n.oid WHERE n.nspname = ANY (current_schemas(false)) GROUP BY type.OID, n.nspname, type.typname;

-- data: find
-- values: ["1", "1"]
SELECT "customer".* FROM "customer" WHERE "customer"."id" = $1 LIMIT $2;

-- data: where, order, limit
-- values: ["paid", "5"]
SELECT "order".* FROM "order" WHERE "order"."status" = $1 ORDER BY "order"."id" DESC LIMIT $2;

-- data: includes: the second query
-- values: ["1", "2", "4"]
SELECT "order".* FROM "order" WHERE "order"."customer_id" IN ($1, $2, $3) ORDER BY "order"."id";

-- data: eager_load
SELECT "customer"."id" AS t0_r0, "customer"."name" AS t0_r1, "order"."id" AS t1_r0, "order"."amount" AS t1_r1 FROM "customer" LEFT OUTER JOIN "order" ON "order"."customer_id" = "customer"."id" ORDER BY "customer"."id", "order"."id";

-- data: eager_load with a limit: the distinct keys
-- values: ["paid", "3"]
SELECT DISTINCT "customer"."id" FROM "customer" LEFT OUTER JOIN "order" ON "order"."customer_id" = "customer"."id" WHERE "order"."status" = $1 ORDER BY "customer"."id" ASC LIMIT $2;

-- data: where.missing
SELECT "customer"."id" FROM "customer" LEFT OUTER JOIN "subscription" ON "subscription"."customer_id" = "customer"."id" WHERE "subscription"."id" IS NULL ORDER BY 1;

-- data: group.count
SELECT COUNT(*) AS "count_all", "order"."status" AS "order_status" FROM "order" GROUP BY "order"."status" ORDER BY 2;

-- data: calculations
SELECT SUM("order"."amount") FROM "order" WHERE "order"."placed_at" BETWEEN '2025-11-01 00:00:00' AND '2025-11-30 23:59:59.999999';

-- data: exists?
-- values: ["lost", "1"]
SELECT 1 AS one FROM "order" WHERE "order"."status" = $1 LIMIT $2;

-- data: or and not
SELECT "order"."id" FROM "order" WHERE ("order"."status" = 'paid' AND "order"."region" != 'us' OR "order"."note" IS NULL AND NOT ("order"."quantity" > 5)) ORDER BY 1;

-- data: pluck with Arel.sql
SELECT DATE_TRUNC('week', placed_at)::date, COUNT(DISTINCT customer_id) FROM "order" GROUP BY 1 ORDER BY 1;

-- data: in_batches
-- values: ["1000"]
SELECT "order"."id" FROM "order" ORDER BY "order"."id" ASC LIMIT $1;

-- data: a subquery in where
SELECT "customer"."name" FROM "customer" WHERE "customer"."id" IN (SELECT "order"."customer_id" FROM "order" WHERE "order"."amount" > 200) ORDER BY 1;

-- data: count of a limited relation
-- values: ["10"]
SELECT COUNT(*) FROM (SELECT 1 AS one FROM "order" WHERE "order"."region" = 'eu' LIMIT $1) subquery_for_count;

-- session: a transaction
BEGIN;
SAVEPOINT active_record_1;
RELEASE SAVEPOINT active_record_1;
COMMIT;
