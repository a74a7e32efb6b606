-- tool: Qt (QPSQL) (captured, simple)
-- session: 1, SELECT version()
SELECT version();

-- data: 2, SELECT '\\' x
SELECT '\\' x;

-- session: 3, SET CLIENT_ENCODING TO 'UNICODE'
SET CLIENT_ENCODING TO 'UNICODE';

-- session: 4, SET DATESTYLE TO 'ISO'
SET DATESTYLE TO 'ISO';

-- session: 5, SET bytea_output TO escape
SET bytea_output TO escape;

-- introspection: 6, SELECT pg_class.relname, pg_namespace.nspname FROM pg_class LEFT JOIN 
SELECT pg_class.relname, pg_namespace.nspname FROM pg_class LEFT JOIN pg_namespace ON (pg_class.relnamespace = pg_namespace.oid) WHERE (pg_class.relkind = 'r') AND (pg_class.relname !~ '^Inv') AND (pg_class.relname !~ '^pg_') AND (pg_namespace.nspname != 'information_schema');

-- introspection: 7, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.attnotnull, pg_attribute.attlen, pg_attribute.atttypmod, pg_get_expr(pg_attrdef.adbin, pg_attrdef.adrelid) FROM pg_class, pg_attribute LEFT JOIN pg_attrdef ON (pg_attrdef.adrelid = pg_attribute.attrelid AND pg_attrdef.adnum = pg_attribute.attnum) WHERE pg_table_is_visible(pg_class.oid) AND pg_class.relname = 'customer' AND pg_attribute.attnum > 0 AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- introspection: 8, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.reln
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.relname FROM pg_attribute, pg_class WHERE pg_table_is_visible(pg_class.oid) AND pg_class.oid IN (SELECT indexrelid FROM pg_index WHERE indisprimary = true AND indrelid IN (SELECT oid FROM pg_class WHERE relname = 'customer')) AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- introspection: 9, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.attnotnull, pg_attribute.attlen, pg_attribute.atttypmod, pg_get_expr(pg_attrdef.adbin, pg_attrdef.adrelid) FROM pg_class, pg_attribute LEFT JOIN pg_attrdef ON (pg_attrdef.adrelid = pg_attribute.attrelid AND pg_attrdef.adnum = pg_attribute.attnum) WHERE pg_table_is_visible(pg_class.oid) AND pg_class.relname = 'order' AND pg_attribute.attnum > 0 AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- introspection: 10, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.reln
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.relname FROM pg_attribute, pg_class WHERE pg_table_is_visible(pg_class.oid) AND pg_class.oid IN (SELECT indexrelid FROM pg_index WHERE indisprimary = true AND indrelid IN (SELECT oid FROM pg_class WHERE relname = 'order')) AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- introspection: 11, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_attribute.attnotnull, pg_attribute.attlen, pg_attribute.atttypmod, pg_get_expr(pg_attrdef.adbin, pg_attrdef.adrelid) FROM pg_class, pg_attribute LEFT JOIN pg_attrdef ON (pg_attrdef.adrelid = pg_attribute.attrelid AND pg_attrdef.adnum = pg_attribute.attnum) WHERE pg_class.relnamespace = (SELECT oid FROM pg_namespace WHERE pg_namespace.nspname = 'entities') AND pg_class.relname = 'product' AND pg_attribute.attnum > 0 AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- introspection: 12, SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.reln
SELECT pg_attribute.attname, pg_attribute.atttypid::int, pg_class.relname FROM pg_attribute, pg_class WHERE pg_class.relnamespace = (SELECT oid FROM pg_namespace WHERE pg_namespace.nspname = 'entities') AND pg_class.oid IN (SELECT indexrelid FROM pg_index WHERE indisprimary = true AND indrelid IN (SELECT oid FROM pg_class WHERE relname = 'product')) AND pg_attribute.attrelid = pg_class.oid AND pg_attribute.attisdropped = false ORDER BY pg_attribute.attnum;

-- data: 13, SELECT "id", "name", "email", "region" FROM "customer" ORDER BY "id" A
SELECT "id", "name", "email", "region" FROM "customer" ORDER BY "id" ASC;

-- session: 14, PREPARE qpsqlpstmt_1 AS SELECT id, name FROM customer WHERE region = $
PREPARE qpsqlpstmt_1 AS SELECT id, name FROM customer WHERE region = $1 ORDER BY id;
EXECUTE qpsqlpstmt_1 ('eu');
DEALLOCATE qpsqlpstmt_1;

-- session: 15, PREPARE qpsqlpstmt_2 AS SELECT id FROM "order" WHERE quantity > $1 AND
PREPARE qpsqlpstmt_2 AS SELECT id FROM "order" WHERE quantity > $1 AND status = $2 ORDER BY id;
EXECUTE qpsqlpstmt_2 (10, 'paid');
DEALLOCATE qpsqlpstmt_2;

-- data: 16, SELECT "product"."id","product"."label",relTblAl_1.name FROM "product"
SELECT "product"."id","product"."label",relTblAl_1.name FROM "product","category" relTblAl_1 WHERE ("product"."category_id"=relTblAl_1.id) ORDER BY "product"."id";

-- data: 17, SELECT count(*) FROM "order"
SELECT count(*) FROM "order";

-- data: 18, SELECT max(placed_at) FROM "order"
SELECT max(placed_at) FROM "order";

-- session: 19, COMMIT
BEGIN;
COMMIT;
