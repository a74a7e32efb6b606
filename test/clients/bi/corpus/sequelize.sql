-- tool: Sequelize (captured, extended)
-- session: 1, SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOU
SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;

-- introspection: 2, WITH ranges AS ( SELECT pg_range.rngtypid, pg_type.typname AS rngtypna
WITH ranges AS (  SELECT pg_range.rngtypid, pg_type.typname AS rngtypname,         pg_type.typarray AS rngtyparray, pg_range.rngsubtype    FROM pg_range LEFT OUTER JOIN pg_type ON pg_type.oid = pg_range.rngtypid)SELECT pg_type.typname, pg_type.typtype, pg_type.oid, pg_type.typarray,       ranges.rngtypname, ranges.rngtypid, ranges.rngtyparray  FROM pg_type LEFT OUTER JOIN ranges ON pg_type.oid = ranges.rngsubtype WHERE (pg_type.typtype IN('b', 'e'));

-- data: 3, SELECT 1+1 AS result
SELECT 1+1 AS result;

-- data: 4, SELECT "id", "name", "email", "born", "region" FROM "entities"."custom
SELECT "id", "name", "email", "born", "region" FROM "entities"."customer" AS "customer" ORDER BY "customer"."id";

-- data: 5, SELECT "id", "name", "email", "born", "region" FROM "entities"."custom
SELECT "id", "name", "email", "born", "region" FROM "entities"."customer" AS "customer" WHERE "customer"."id" = 1;

-- data: 6, SELECT "id", "name", "email", "born", "region" FROM "entities"."custom
SELECT "id", "name", "email", "born", "region" FROM "entities"."customer" AS "customer" WHERE "customer"."region" = 'eu' ORDER BY "customer"."id" DESC LIMIT 1;

-- data: 7, SELECT "id", "customer_id", "region", "status", "quantity", "amount", 
SELECT "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" FROM "entities"."order" AS "order" WHERE ("order"."note" IS NULL OR "order"."amount" > 10) AND "order"."status" IN ('new', 'paid') AND "order"."quantity" BETWEEN 3 AND 20 ORDER BY "order"."id" ASC LIMIT 10 OFFSET 2;

-- data: 8, SELECT "customer"."id", "customer"."name", "customer"."email", "custom
SELECT "customer"."id", "customer"."name", "customer"."email", "customer"."born", "customer"."region", "orders"."id" AS "orders.id", "orders"."customer_id" AS "orders.customer_id", "orders"."region" AS "orders.region", "orders"."status" AS "orders.status", "orders"."quantity" AS "orders.quantity", "orders"."amount" AS "orders.amount", "orders"."placed_at" AS "orders.placed_at", "orders"."note" AS "orders.note" FROM "entities"."customer" AS "customer" LEFT OUTER JOIN "entities"."order" AS "orders" ON "customer"."id" = "orders"."customer_id" ORDER BY "customer"."id", "orders"."id";

-- data: 9, SELECT "customer".*, "orders"."id" AS "orders.id", "orders"."customer_
SELECT "customer".*, "orders"."id" AS "orders.id", "orders"."customer_id" AS "orders.customer_id", "orders"."region" AS "orders.region", "orders"."status" AS "orders.status", "orders"."quantity" AS "orders.quantity", "orders"."amount" AS "orders.amount", "orders"."placed_at" AS "orders.placed_at", "orders"."note" AS "orders.note" FROM (SELECT "customer"."id", "customer"."name", "customer"."email", "customer"."born", "customer"."region" FROM "entities"."customer" AS "customer" WHERE ( SELECT "customer_id" FROM "entities"."order" AS "orders" WHERE ("orders"."status" = 'paid' AND "orders"."customer_id" = "customer"."id") LIMIT 1 ) IS NOT NULL ORDER BY "customer"."id" LIMIT 3) AS "customer" INNER JOIN "entities"."order" AS "orders" ON "customer"."id" = "orders"."customer_id" AND "orders"."status" = 'paid' ORDER BY "customer"."id", "orders"."id";

-- data: 10, SELECT "customer"."id", "customer"."name", "customer"."email", "custom
SELECT "customer"."id", "customer"."name", "customer"."email", "customer"."born", "customer"."region" FROM "entities"."customer" AS "customer" ORDER BY "customer"."id";

-- data: 11, SELECT "id", "customer_id", "region", "status", "quantity", "amount", 
SELECT "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" FROM "entities"."order" AS "order" WHERE "order"."customer_id" IN (1, 2, 4, 5, 6, 8, 9, 10, 12) ORDER BY "order"."id";

-- data: 12, SELECT "customer"."id", "customer"."name", "customer"."email", "custom
SELECT "customer"."id", "customer"."name", "customer"."email", "customer"."born", "customer"."region", "orders"."id" AS "orders.id", "orders"."customer_id" AS "orders.customer_id", "orders"."region" AS "orders.region", "orders"."status" AS "orders.status", "orders"."quantity" AS "orders.quantity", "orders"."amount" AS "orders.amount", "orders"."placed_at" AS "orders.placed_at", "orders"."note" AS "orders.note", "orders->payments"."id" AS "orders.payments.id", "orders->payments"."order_id" AS "orders.payments.order_id", "orders->payments"."method" AS "orders.payments.method", "orders->payments"."paid" AS "orders.payments.paid" FROM "entities"."customer" AS "customer" LEFT OUTER JOIN "entities"."order" AS "orders" ON "customer"."id" = "orders"."customer_id" LEFT OUTER JOIN "entities"."payment" AS "orders->payments" ON "orders"."id" = "orders->payments"."order_id" ORDER BY "customer"."id", "orders"."id";

-- data: 13, SELECT count("order"."id") AS "count" FROM "entities"."order" AS "orde
SELECT count("order"."id") AS "count" FROM "entities"."order" AS "order" LEFT OUTER JOIN "entities"."customer" AS "customer" ON "order"."customer_id" = "customer"."id";

-- data: 14, SELECT "order"."id", "order"."customer_id", "order"."region", "order".
SELECT "order"."id", "order"."customer_id", "order"."region", "order"."status", "order"."quantity", "order"."amount", "order"."placed_at", "order"."note", "customer"."id" AS "customer.id", "customer"."name" AS "customer.name", "customer"."email" AS "customer.email", "customer"."born" AS "customer.born", "customer"."region" AS "customer.region" FROM "entities"."order" AS "order" LEFT OUTER JOIN "entities"."customer" AS "customer" ON "order"."customer_id" = "customer"."id" ORDER BY "order"."id" LIMIT 5;

-- data: 15, SELECT count(*) AS "count" FROM "entities"."order" AS "order" WHERE "o
SELECT count(*) AS "count" FROM "entities"."order" AS "order" WHERE "order"."region" = 'eu';

-- data: 16, SELECT count(DISTINCT("customer_id")) AS "count" FROM "entities"."orde
SELECT count(DISTINCT("customer_id")) AS "count" FROM "entities"."order" AS "order";

-- data: 17, SELECT sum("amount") AS "sum" FROM "entities"."order" AS "order" WHERE
SELECT sum("amount") AS "sum" FROM "entities"."order" AS "order" WHERE "order"."region" != 'us';

-- data: 18, SELECT max("placed_at") AS "max" FROM "entities"."order" AS "order"
SELECT max("placed_at") AS "max" FROM "entities"."order" AS "order";

-- data: 19, SELECT "region", COUNT("id") AS "n", SUM("amount") AS "total" FROM "en
SELECT "region", COUNT("id") AS "n", SUM("amount") AS "total" FROM "entities"."order" AS "order" GROUP BY "region" HAVING COUNT("id") > 1 ORDER BY total DESC;

-- data: 20, SELECT date_trunc('month', "placed_at") AS "month", count('*') AS "n" 
SELECT date_trunc('month', "placed_at") AS "month", count('*') AS "n" FROM "entities"."order" AS "order" GROUP BY date_trunc('month', "placed_at") ORDER BY month ASC;

-- data: 21, SELECT "id", "name", "born", "region" FROM "entities"."customer" AS "c
SELECT "id", "name", "born", "region" FROM "entities"."customer" AS "customer" WHERE "customer"."name" ILIKE '%a%' ORDER BY "customer"."id";

-- data: 22, SELECT "id", "label", "price", "specs", "tags" FROM "entities"."produc
SELECT "id", "label", "price", "specs", "tags" FROM "entities"."product" AS "product" WHERE ("product"."specs"#>>'{origin}') = 'in' ORDER BY "product"."id";

-- data: 23, SELECT "id", "label", "price", "specs", "tags" FROM "entities"."produc
SELECT "id", "label", "price", "specs", "tags" FROM "entities"."product" AS "product" WHERE "product"."tags" @> ARRAY['sale']::TEXT[] ORDER BY "product"."id";

-- data: 24, SELECT "id", "name", "email", "born", "region", (SELECT COUNT(*) FROM 
SELECT "id", "name", "email", "born", "region", (SELECT COUNT(*) FROM entities."order" AS o WHERE o.customer_id = "customer"."id") AS "orders" FROM "entities"."customer" AS "customer" ORDER BY "customer"."id";

-- data: 25, SELECT DISTINCT("status") AS "DISTINCT" FROM "entities"."order" AS "or
SELECT DISTINCT("status") AS "DISTINCT" FROM "entities"."order" AS "order" ORDER BY "order"."status";

-- data: 26, SELECT id FROM entities."order" WHERE region = 'eu' AND quantity > 20 
SELECT id FROM entities."order" WHERE region = 'eu' AND quantity > 20 ORDER BY id;

-- data: 27, SELECT id FROM entities."order" WHERE region = $1 ORDER BY id
-- values: ["eu"]
SELECT id FROM entities."order" WHERE region = $1 ORDER BY id;

-- introspection: 28, SELECT table_name FROM information_schema.tables WHERE table_schema = 
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type LIKE '%TABLE' AND table_name != 'spatial_ref_sys';

-- introspection: 29, SELECT schema_name FROM information_schema.schemata WHERE schema_name 
SELECT schema_name FROM information_schema.schemata WHERE schema_name <> 'information_schema' AND schema_name != 'public' AND schema_name !~ E'^pg_';

-- introspection: 30, SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.
SELECT pk.constraint_type as "Constraint",c.column_name as "Field", c.column_default as "Default",c.is_nullable as "Null", (CASE WHEN c.udt_name = 'hstore' THEN c.udt_name ELSE c.data_type END) || (CASE WHEN c.character_maximum_length IS NOT NULL THEN '(' || c.character_maximum_length || ')' ELSE '' END) as "Type", (SELECT array_agg(e.enumlabel) FROM pg_catalog.pg_type t JOIN pg_catalog.pg_enum e ON t.oid=e.enumtypid WHERE t.typname=c.udt_name) AS "special", (SELECT pgd.description FROM pg_catalog.pg_statio_all_tables AS st INNER JOIN pg_catalog.pg_description pgd on (pgd.objoid=st.relid) WHERE c.ordinal_position=pgd.objsubid AND c.table_name=st.relname) AS "Comment" FROM information_schema.columns c LEFT JOIN (SELECT tc.table_schema, tc.table_name, cu.column_name, tc.constraint_type FROM information_schema.TABLE_CONSTRAINTS tc JOIN information_schema.KEY_COLUMN_USAGE  cu ON tc.table_schema=cu.table_schema and tc.table_name=cu.table_name and tc.constraint_name=cu.constraint_name and tc.constraint_type='PRIMARY KEY') pk ON pk.table_schema=c.table_schema AND pk.table_name=c.table_name AND pk.column_name=c.column_name WHERE c.table_name = 'customer' AND c.table_schema = 'entities';

-- introspection: 31, SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique A
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a, pg_namespace s WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'customer' AND s.oid = t.relnamespace AND s.nspname = 'entities' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;

-- introspection: 32, SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_s
SELECT DISTINCT tc.constraint_name as constraint_name, tc.constraint_schema as constraint_schema, tc.constraint_catalog as constraint_catalog, tc.table_name as table_name,tc.table_schema as table_schema,tc.table_catalog as table_catalog,tc.initially_deferred as initially_deferred,tc.is_deferrable as is_deferrable,kcu.column_name as column_name,ccu.table_schema  AS referenced_table_schema,ccu.table_catalog  AS referenced_table_catalog,ccu.table_name  AS referenced_table_name,ccu.column_name AS referenced_column_name FROM information_schema.table_constraints AS tc JOIN information_schema.key_column_usage AS kcu ON tc.constraint_name = kcu.constraint_name JOIN information_schema.constraint_column_usage AS ccu ON ccu.constraint_name = tc.constraint_name WHERE constraint_type = 'FOREIGN KEY' AND tc.table_name = 'order' AND tc.table_catalog = 'osl' AND tc.table_schema = 'entities';

-- introspection: 33, SELECT table_name FROM information_schema.tables WHERE table_schema = 
SELECT table_name FROM information_schema.tables WHERE table_schema = 'entities' AND table_name = 'customer';

-- data: 34, SELECT count(*) AS "count" FROM "entities"."customer" AS "customer"
SELECT count(*) AS "count" FROM "entities"."customer" AS "customer";

-- session: 35, SET TRANSACTION ISOLATION LEVEL READ COMMITTED
START TRANSACTION;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
COMMIT;
