-- tool: LibreOffice Base (written, extended)
-- session: connects by its own driver
SELECT CURRENT_USER;

-- introspection: tables
SELECT DISTINCT ON (pg_namespace.nspname, relname) pg_namespace.nspname, relname, relkind, pg_description.description FROM pg_namespace, pg_class LEFT JOIN pg_description ON pg_class.oid = pg_description.objoid
WHERE relnamespace = pg_namespace.oid AND ( relkind = 'r' OR relkind = 'v') AND nspname = 'entities' ORDER BY pg_namespace.nspname, relname;

-- introspection: columns
SELECT pg_namespace.nspname, pg_class.relname, pg_attribute.attname, pg_type.typname, pg_attribute.atttypmod, pg_attribute.attnotnull, pg_type.typdefault, pg_type.typtype, pg_attrdef.adbin, pg_description.description, pg_type.typbasetype, pg_attribute.attnum
FROM pg_class, pg_attribute LEFT JOIN pg_attrdef ON pg_attribute.attrelid = pg_attrdef.adrelid AND pg_attribute.attnum = pg_attrdef.adnum LEFT JOIN pg_description ON pg_attribute.attrelid = pg_description.objoid AND pg_attribute.attnum=pg_description.objsubid, pg_type, pg_namespace
WHERE pg_attribute.attrelid = pg_class.oid AND pg_attribute.atttypid = pg_type.oid AND pg_class.relnamespace = pg_namespace.oid AND NOT pg_attribute.attisdropped AND pg_namespace.nspname LIKE 'entities' AND pg_class.relname LIKE 'customer' AND pg_attribute.attname LIKE '%'
AND pg_attribute.attnum > 0 ORDER BY pg_namespace.nspname, pg_class.relname, pg_attribute.attnum;

-- introspection: primary keys
SELECT nmsp.nspname, cl.relname, con.conkey, con.conname, con.conrelid::regclass FROM pg_constraint as con, pg_class as cl, pg_namespace as nmsp WHERE con.connamespace = nmsp.oid AND con.conrelid = cl.oid AND con.contype = 'p' AND nmsp.nspname = 'entities' AND cl.relname = 'order';

-- introspection: foreign keys
SELECT con.conname, con.contype, con.confupdtype, con.confdeltype, class2.relname, nmsp2.nspname, con.conkey, con.confkey FROM pg_constraint AS con INNER JOIN pg_class ON con.conrelid = pg_class.oid INNER JOIN pg_namespace AS nmsp ON pg_class.relnamespace = nmsp.oid
LEFT JOIN pg_class AS class2 ON con.confrelid = class2.oid LEFT JOIN pg_namespace AS nmsp2 ON class2.relnamespace=nmsp2.oid WHERE pg_class.relname = 'order' AND nmsp.nspname = 'entities' ORDER BY 1;

-- introspection: privileges
SELECT * FROM (SELECT current_database()::VARCHAR AS TABLE_CAT, table_schema, table_name, grantor, grantee, privilege_type, is_grantable FROM information_schema.table_privileges) s WHERE table_schema LIKE 'entities' AND table_name LIKE 'customer' AND privilege_type = 'SELECT' ORDER BY table_schema, table_name, privilege_type;

-- introspection: types
SELECT typname, typtype, typnotnull FROM pg_type WHERE typname IN ('int4', 'text', 'numeric', 'timestamptz') ORDER BY 1;

-- data: a table opened in the grid
SELECT * FROM "entities"."customer";

-- data: the row count of the grid
SELECT COUNT( * ) FROM "entities"."order";

-- data: the query wizard
SELECT "customer"."name" AS "Name", "order"."amount" AS "Amount" FROM "entities"."order" AS "order", "entities"."customer" AS "customer" WHERE "order"."customer_id" = "customer"."id" AND "order"."status" = 'paid' ORDER BY "order"."id" ASC;

-- data: an outer join of the designer
SELECT "customer"."id", "order"."id" FROM "entities"."customer" "customer" LEFT OUTER JOIN "entities"."order" "order" ON "customer"."id" = "order"."customer_id" ORDER BY 1, 2;

-- data: groups of a report
SELECT "region", COUNT( "id" ) AS "n", SUM( "amount" ) AS "total" FROM "entities"."order" GROUP BY "region" HAVING ( ( COUNT( "id" ) > 2 ) ) ORDER BY "region" ASC;

-- data: a parameter of a form
-- values: ["eu"]
SELECT "id", "name" FROM "entities"."customer" WHERE "region" = $1 ORDER BY "id";

-- data: a pivot's source in Calc
SELECT "region", "status", "quantity", "amount", "placed_at" FROM "entities"."order" WHERE ( ( "amount" > 10 ) ) ORDER BY "id" LIMIT 1000;
