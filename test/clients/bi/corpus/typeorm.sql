-- tool: TypeORM (captured, extended)
-- session: 1, SELECT version()
SELECT version();

-- session: 2, SELECT * FROM current_schema()
SELECT * FROM current_schema();

-- data: 3, SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Custome
SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name", "Customer"."email" AS "Customer_email", "Customer"."born" AS "Customer_born", "Customer"."region" AS "Customer_region" FROM "entities"."customer" "Customer" ORDER BY "Customer"."id" ASC;

-- data: 4, SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Custome
-- values: ["1"]
SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name", "Customer"."email" AS "Customer_email", "Customer"."born" AS "Customer_born", "Customer"."region" AS "Customer_region" FROM "entities"."customer" "Customer" WHERE (("Customer"."id" = $1)) LIMIT 1;

-- data: 5, SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Custome
SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name", "Customer"."email" AS "Customer_email", "Customer"."born" AS "Customer_born", "Customer"."region" AS "Customer_region", "Customer__Customer_orders"."id" AS "Customer__Customer_orders_id", "Customer__Customer_orders"."region" AS "Customer__Customer_orders_region", "Customer__Customer_orders"."status" AS "Customer__Customer_orders_status", "Customer__Customer_orders"."quantity" AS "Customer__Customer_orders_quantity", "Customer__Customer_orders"."amount" AS "Customer__Customer_orders_amount", "Customer__Customer_orders"."placed_at" AS "Customer__Customer_orders_placed_at", "Customer__Customer_orders"."note" AS "Customer__Customer_orders_note", "Customer__Customer_orders"."customer_id" AS "Customer__Customer_orders_customer_id" FROM "entities"."customer" "Customer" LEFT JOIN "entities"."order" "Customer__Customer_orders" ON "Customer__Customer_orders"."customer_id"="Customer"."id" ORDER BY "Customer"."id" ASC;

-- data: 6, SELECT DISTINCT "distinctAlias"."Customer_id" AS "ids_Customer_id", "d
SELECT DISTINCT "distinctAlias"."Customer_id" AS "ids_Customer_id", "distinctAlias"."Customer_id" FROM (SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name", "Customer"."email" AS "Customer_email", "Customer"."born" AS "Customer_born", "Customer"."region" AS "Customer_region", "Customer__Customer_orders"."id" AS "Customer__Customer_orders_id", "Customer__Customer_orders"."region" AS "Customer__Customer_orders_region", "Customer__Customer_orders"."status" AS "Customer__Customer_orders_status", "Customer__Customer_orders"."quantity" AS "Customer__Customer_orders_quantity", "Customer__Customer_orders"."amount" AS "Customer__Customer_orders_amount", "Customer__Customer_orders"."placed_at" AS "Customer__Customer_orders_placed_at", "Customer__Customer_orders"."note" AS "Customer__Customer_orders_note", "Customer__Customer_orders"."customer_id" AS "Customer__Customer_orders_customer_id" FROM "entities"."customer" "Customer" LEFT JOIN "entities"."order" "Customer__Customer_orders" ON "Customer__Customer_orders"."customer_id"="Customer"."id") "distinctAlias" ORDER BY "distinctAlias"."Customer_id" ASC, "Customer_id" ASC LIMIT 3 OFFSET 1;

-- data: 7, SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Custome
SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name", "Customer"."email" AS "Customer_email", "Customer"."born" AS "Customer_born", "Customer"."region" AS "Customer_region", "Customer__Customer_orders"."id" AS "Customer__Customer_orders_id", "Customer__Customer_orders"."region" AS "Customer__Customer_orders_region", "Customer__Customer_orders"."status" AS "Customer__Customer_orders_status", "Customer__Customer_orders"."quantity" AS "Customer__Customer_orders_quantity", "Customer__Customer_orders"."amount" AS "Customer__Customer_orders_amount", "Customer__Customer_orders"."placed_at" AS "Customer__Customer_orders_placed_at", "Customer__Customer_orders"."note" AS "Customer__Customer_orders_note", "Customer__Customer_orders"."customer_id" AS "Customer__Customer_orders_customer_id" FROM "entities"."customer" "Customer" LEFT JOIN "entities"."order" "Customer__Customer_orders" ON "Customer__Customer_orders"."customer_id"="Customer"."id" WHERE "Customer"."id" IN (2, 4, 5) ORDER BY "Customer"."id" ASC;

-- data: 8, SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region",
-- values: ["new","paid","3","9","200"]
SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region", "Order"."status" AS "Order_status", "Order"."quantity" AS "Order_quantity", "Order"."amount" AS "Order_amount", "Order"."placed_at" AS "Order_placed_at", "Order"."note" AS "Order_note", "Order"."customer_id" AS "Order_customer_id" FROM "entities"."order" "Order" WHERE (((("Order"."status" IN ($1, $2)) AND ("Order"."quantity" BETWEEN $3 AND $4))) OR ((("Order"."note" IS NULL) AND ("Order"."amount" > $5)))) ORDER BY "Order"."id" DESC;

-- data: 9, SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region",
-- values: ["a%"]
SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region", "Order"."status" AS "Order_status", "Order"."quantity" AS "Order_quantity", "Order"."amount" AS "Order_amount", "Order"."placed_at" AS "Order_placed_at", "Order"."note" AS "Order_note", "Order"."customer_id" AS "Order_customer_id", "Order__Order_customer"."id" AS "Order__Order_customer_id", "Order__Order_customer"."name" AS "Order__Order_customer_name", "Order__Order_customer"."email" AS "Order__Order_customer_email", "Order__Order_customer"."born" AS "Order__Order_customer_born", "Order__Order_customer"."region" AS "Order__Order_customer_region", "Order__Order_payments"."id" AS "Order__Order_payments_id", "Order__Order_payments"."method" AS "Order__Order_payments_method", "Order__Order_payments"."paid" AS "Order__Order_payments_paid", "Order__Order_payments"."order_id" AS "Order__Order_payments_order_id" FROM "entities"."order" "Order" LEFT JOIN "entities"."customer" "Order__Order_customer" ON "Order__Order_customer"."id"="Order"."customer_id"  LEFT JOIN "entities"."payment" "Order__Order_payments" ON "Order__Order_payments"."order_id"="Order"."id" WHERE (((("Order__Order_customer"."name" ILIKE $1)))) ORDER BY "Order"."id" ASC;

-- data: 10, SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region",
-- values: ["us"]
SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region", "Order"."status" AS "Order_status", "Order"."quantity" AS "Order_quantity", "Order"."amount" AS "Order_amount", "Order"."placed_at" AS "Order_placed_at", "Order"."note" AS "Order_note", "Order"."customer_id" AS "Order_customer_id" FROM "entities"."order" "Order" WHERE (("Order"."region" != $1)) ORDER BY "Order"."id" ASC LIMIT 5;

-- data: 11, SELECT COUNT(1) AS "cnt" FROM "entities"."order" "Order" WHERE (("Orde
-- values: ["us"]
SELECT COUNT(1) AS "cnt" FROM "entities"."order" "Order" WHERE (("Order"."region" != $1));

-- data: 12, SELECT COUNT(1) AS "cnt" FROM "entities"."order" "Order" WHERE (("Orde
-- values: ["paid"]
SELECT COUNT(1) AS "cnt" FROM "entities"."order" "Order" WHERE (("Order"."status" = $1));

-- data: 13, SELECT 1 AS "row_exists" FROM (SELECT 1 AS dummy_column) "dummy_table"
-- values: ["eu"]
SELECT 1 AS "row_exists" FROM (SELECT 1 AS dummy_column) "dummy_table" WHERE EXISTS (SELECT 1 FROM "entities"."order" "Order" WHERE (("Order"."region" = $1))) LIMIT 1;

-- data: 14, SELECT SUM("Order"."quantity") AS "SUM" FROM "entities"."order" "Order
-- values: ["eu"]
SELECT SUM("Order"."quantity") AS "SUM" FROM "entities"."order" "Order" WHERE (("Order"."region" = $1));

-- data: 15, SELECT AVG("Order"."quantity") AS "AVG" FROM "entities"."order" "Order
SELECT AVG("Order"."quantity") AS "AVG" FROM "entities"."order" "Order";

-- data: 16, SELECT MAX("Order"."quantity") AS "MAX" FROM "entities"."order" "Order
SELECT MAX("Order"."quantity") AS "MAX" FROM "entities"."order" "Order";

-- data: 17, SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region",
-- values: ["1","2","4","5","6","8","9","10","12"]
SELECT "Order"."id" AS "Order_id", "Order"."region" AS "Order_region", "Order"."status" AS "Order_status", "Order"."quantity" AS "Order_quantity", "Order"."amount" AS "Order_amount", "Order"."placed_at" AS "Order_placed_at", "Order"."note" AS "Order_note", "Order"."customer_id" AS "Order_customer_id" FROM "entities"."order" "Order" WHERE "Order"."customer_id" IN ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- data: 18, SELECT "Order"."id" AS "Order_orders_id", "Order"."customer_id" AS "Cu
SELECT "Order"."id" AS "Order_orders_id", "Order"."customer_id" AS "Customer_id" FROM "entities"."order" "Order" WHERE "Order"."customer_id" IN (1, 2, 4, 5, 6, 8, 9, 10, 12);

-- data: 19, SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Custome
SELECT "Customer"."id" AS "Customer_id", "Customer"."name" AS "Customer_name" FROM "entities"."customer" "Customer" WHERE ((lower("Customer"."name") like '%a%')) ORDER BY "Customer_id" ASC;

-- data: 20, SELECT "o"."region" AS "region", COUNT(*) AS "n", SUM("o"."amount") AS
-- values: ["1"]
SELECT "o"."region" AS "region", COUNT(*) AS "n", SUM("o"."amount") AS "s" FROM "entities"."order" "o" GROUP BY "o"."region" HAVING COUNT(*) > $1 ORDER BY "s" DESC;

-- data: 21, SELECT "o"."id" AS "o_id", "o"."region" AS "o_region", "o"."status" AS
-- values: ["eu"]
SELECT "o"."id" AS "o_id", "o"."region" AS "o_region", "o"."status" AS "o_status", "o"."quantity" AS "o_quantity", "o"."amount" AS "o_amount", "o"."placed_at" AS "o_placed_at", "o"."note" AS "o_note", "o"."customer_id" AS "o_customer_id", "c"."id" AS "c_id", "c"."name" AS "c_name", "c"."email" AS "c_email", "c"."born" AS "c_born", "c"."region" AS "c_region" FROM "entities"."order" "o" LEFT JOIN "entities"."customer" "c" ON "c"."id"="o"."customer_id" WHERE "c"."region" = $1 AND "o"."amount" > (SELECT AVG("x"."amount") FROM "entities"."order" "x") ORDER BY "o"."id" ASC LIMIT 5;

-- data: 22, SELECT DISTINCT ON ("o"."customer_id") "o"."id" AS "o_id", "o"."status
SELECT DISTINCT ON ("o"."customer_id") "o"."id" AS "o_id", "o"."status" AS "o_status" FROM "entities"."order" "o" ORDER BY "o"."customer_id" ASC, "o_id" ASC;

-- data: 23, WITH "eu" AS (SELECT id FROM entities.customer WHERE region = 'eu') SE
WITH "eu" AS (SELECT id FROM entities.customer WHERE region = 'eu') SELECT COUNT(1) AS "cnt" FROM "entities"."order" "o" WHERE "o"."customer_id" IN (SELECT id FROM eu);

-- session: 24, SELECT * FROM current_database()
SELECT * FROM current_database();

-- introspection: 25, SELECT "table_schema", "table_name", obj_description((quote_ident("tab
SELECT "table_schema", "table_name", obj_description((quote_ident("table_schema") || '.' || quote_ident("table_name"))::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables" WHERE ("table_schema" = 'entities' AND "table_name" = 'customer') OR ("table_schema" = 'entities' AND "table_name" = 'order');

-- introspection: 26, SELECT TRUE FROM information_schema.columns WHERE table_name = 'pg_cla
SELECT TRUE FROM information_schema.columns WHERE table_name = 'pg_class' and column_name = 'relispartition';

-- introspection: 27, SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalo
SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalog) || '.' || quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'entities' AND "table_name" = 'customer') OR ("table_schema" = 'entities' AND "table_name" = 'order');

-- introspection: 28, SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name"
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression", CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name" FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace" LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey") WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'entities' AND "t"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'order'));

-- introspection: 29, SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name"
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "i"."relname" AS "constraint_name", "a"."attname" AS "column_name", CASE "ix"."indisunique" WHEN 't' THEN 'TRUE' ELSE'FALSE' END AS "is_unique", pg_get_expr("ix"."indpred", "ix"."indrelid") AS "condition", "types"."typname" AS "type_name", "am"."amname" AS "index_type" FROM "pg_class" "t" INNER JOIN "pg_index" "ix" ON "ix"."indrelid" = "t"."oid" INNER JOIN "pg_attribute" "a" ON "a"."attrelid" = "t"."oid"  AND "a"."attnum" = ANY ("ix"."indkey") INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "t"."relnamespace" INNER JOIN "pg_class" "i" ON "i"."oid" = "ix"."indexrelid" INNER JOIN "pg_type" "types" ON "types"."oid" = "a"."atttypid" INNER JOIN "pg_am" "am" ON "i"."relam" = "am"."oid" LEFT JOIN "pg_constraint" "cnst" ON "cnst"."conname" = "i"."relname" WHERE "t"."relkind" IN ('r', 'p') AND "cnst"."contype" IS NULL AND (("ns"."nspname" = 'entities' AND "t"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'order'));

-- introspection: 30, SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table
SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table_schema", "con"."relname" AS "table_name", "att2"."attname" AS "column_name", "ns"."nspname" AS "referenced_table_schema", "cl"."relname" AS "referenced_table_name", "att"."attname" AS "referenced_column_name", "con"."confdeltype" AS "on_delete", "con"."confupdtype" AS "on_update", "con"."condeferrable" AS "deferrable", "con"."condeferred" AS "deferred" FROM ( SELECT UNNEST ("con1"."conkey") AS "parent", UNNEST ("con1"."confkey") AS "child", "con1"."confrelid", "con1"."conrelid", "con1"."conname", "con1"."contype", "ns"."nspname", "cl"."relname", "con1"."condeferrable", CASE WHEN "con1"."condeferred" THEN 'INITIALLY DEFERRED' ELSE 'INITIALLY IMMEDIATE' END as condeferred, CASE "con1"."confdeltype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confdeltype", CASE "con1"."confupdtype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confupdtype" FROM "pg_class" "cl" INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_constraint" "con1" ON "con1"."conrelid" = "cl"."oid" WHERE "con1"."contype" = 'f' AND (("ns"."nspname" = 'entities' AND "cl"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "cl"."relname" = 'order')) ) "con" INNER JOIN "pg_attribute" "att" ON "att"."attrelid" = "con"."confrelid" AND "att"."attnum" = "con"."child" INNER JOIN "pg_class" "cl" ON "cl"."oid" = "con"."confrelid"  AND "cl"."relispartition" = 'f'INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_attribute" "att2" ON "att2"."attrelid" = "con"."conrelid" AND "att2"."attnum" = "con"."parent";

-- introspection: 31, SELECT * FROM "information_schema"."tables" WHERE "table_schema" = $1 
-- values: ["entities","typeorm_metadata"]
SELECT * FROM "information_schema"."tables" WHERE "table_schema" = $1 AND "table_name" = $2;

-- introspection: 32, SELECT * FROM "information_schema"."tables" WHERE "table_schema" = $1 
-- values: ["entities","customer"]
SELECT * FROM "information_schema"."tables" WHERE "table_schema" = $1 AND "table_name" = $2;

-- introspection: 33, SELECT * FROM "information_schema"."columns" WHERE "table_schema" = $1
-- values: ["entities","customer","name"]
SELECT * FROM "information_schema"."columns" WHERE "table_schema" = $1 AND "table_name" = $2 AND "column_name" = $3;

-- introspection: 34, SELECT * FROM "information_schema"."schemata" WHERE "schema_name" = $1
-- values: ["entities"]
SELECT * FROM "information_schema"."schemata" WHERE "schema_name" = $1;

-- introspection: 35, SELECT "table_schema", "table_name", obj_description((quote_ident("tab
SELECT "table_schema", "table_name", obj_description((quote_ident("table_schema") || '.' || quote_ident("table_name"))::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables" WHERE ("table_schema" = 'entities' AND "table_name" = 'customer') OR ("table_schema" = 'entities' AND "table_name" = 'order') OR ("table_schema" = 'entities' AND "table_name" = 'payment');

-- introspection: 36, SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalo
SELECT columns.*, pg_catalog.col_description((quote_ident(table_catalog) || '.' || quote_ident(table_schema) || '.' || quote_ident(table_name))::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'entities' AND "table_name" = 'customer') OR ("table_schema" = 'entities' AND "table_name" = 'order') OR ("table_schema" = 'entities' AND "table_name" = 'payment');

-- introspection: 37, SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name"
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "cnst"."conname" AS "constraint_name", pg_get_constraintdef("cnst"."oid") AS "expression", CASE "cnst"."contype" WHEN 'p' THEN 'PRIMARY' WHEN 'u' THEN 'UNIQUE' WHEN 'c' THEN 'CHECK' WHEN 'x' THEN 'EXCLUDE' END AS "constraint_type", "a"."attname" AS "column_name" FROM "pg_constraint" "cnst" INNER JOIN "pg_class" "t" ON "t"."oid" = "cnst"."conrelid" INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "cnst"."connamespace" LEFT JOIN "pg_attribute" "a" ON "a"."attrelid" = "cnst"."conrelid" AND "a"."attnum" = ANY ("cnst"."conkey") WHERE "t"."relkind" IN ('r', 'p') AND (("ns"."nspname" = 'entities' AND "t"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'order') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'payment'));

-- introspection: 38, SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name"
SELECT "ns"."nspname" AS "table_schema", "t"."relname" AS "table_name", "i"."relname" AS "constraint_name", "a"."attname" AS "column_name", CASE "ix"."indisunique" WHEN 't' THEN 'TRUE' ELSE'FALSE' END AS "is_unique", pg_get_expr("ix"."indpred", "ix"."indrelid") AS "condition", "types"."typname" AS "type_name", "am"."amname" AS "index_type" FROM "pg_class" "t" INNER JOIN "pg_index" "ix" ON "ix"."indrelid" = "t"."oid" INNER JOIN "pg_attribute" "a" ON "a"."attrelid" = "t"."oid"  AND "a"."attnum" = ANY ("ix"."indkey") INNER JOIN "pg_namespace" "ns" ON "ns"."oid" = "t"."relnamespace" INNER JOIN "pg_class" "i" ON "i"."oid" = "ix"."indexrelid" INNER JOIN "pg_type" "types" ON "types"."oid" = "a"."atttypid" INNER JOIN "pg_am" "am" ON "i"."relam" = "am"."oid" LEFT JOIN "pg_constraint" "cnst" ON "cnst"."conname" = "i"."relname" WHERE "t"."relkind" IN ('r', 'p') AND "cnst"."contype" IS NULL AND (("ns"."nspname" = 'entities' AND "t"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'order') OR ("ns"."nspname" = 'entities' AND "t"."relname" = 'payment'));

-- introspection: 39, SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table
SELECT "con"."conname" AS "constraint_name", "con"."nspname" AS "table_schema", "con"."relname" AS "table_name", "att2"."attname" AS "column_name", "ns"."nspname" AS "referenced_table_schema", "cl"."relname" AS "referenced_table_name", "att"."attname" AS "referenced_column_name", "con"."confdeltype" AS "on_delete", "con"."confupdtype" AS "on_update", "con"."condeferrable" AS "deferrable", "con"."condeferred" AS "deferred" FROM ( SELECT UNNEST ("con1"."conkey") AS "parent", UNNEST ("con1"."confkey") AS "child", "con1"."confrelid", "con1"."conrelid", "con1"."conname", "con1"."contype", "ns"."nspname", "cl"."relname", "con1"."condeferrable", CASE WHEN "con1"."condeferred" THEN 'INITIALLY DEFERRED' ELSE 'INITIALLY IMMEDIATE' END as condeferred, CASE "con1"."confdeltype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confdeltype", CASE "con1"."confupdtype" WHEN 'a' THEN 'NO ACTION' WHEN 'r' THEN 'RESTRICT' WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'd' THEN 'SET DEFAULT' END as "confupdtype" FROM "pg_class" "cl" INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_constraint" "con1" ON "con1"."conrelid" = "cl"."oid" WHERE "con1"."contype" = 'f' AND (("ns"."nspname" = 'entities' AND "cl"."relname" = 'customer') OR ("ns"."nspname" = 'entities' AND "cl"."relname" = 'order') OR ("ns"."nspname" = 'entities' AND "cl"."relname" = 'payment')) ) "con" INNER JOIN "pg_attribute" "att" ON "att"."attrelid" = "con"."confrelid" AND "att"."attnum" = "con"."child" INNER JOIN "pg_class" "cl" ON "cl"."oid" = "con"."confrelid"  AND "cl"."relispartition" = 'f'INNER JOIN "pg_namespace" "ns" ON "cl"."relnamespace" = "ns"."oid" INNER JOIN "pg_attribute" "att2" ON "att2"."attrelid" = "con"."conrelid" AND "att2"."attnum" = "con"."parent";

-- data: 40, SELECT COUNT(1) AS "cnt" FROM "entities"."customer" "Customer"
SELECT COUNT(1) AS "cnt" FROM "entities"."customer" "Customer";

-- session: 41, SET TRANSACTION ISOLATION LEVEL REPEATABLE READ
START TRANSACTION;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
COMMIT;
