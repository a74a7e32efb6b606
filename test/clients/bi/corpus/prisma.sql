-- tool: Prisma (written, extended)
-- session: connects
SET search_path = "entities";
SELECT version();

-- introspection: schemas
-- values: ["{entities}"]
SELECT namespace.nspname as namespace_name FROM pg_namespace as namespace WHERE namespace.nspname = ANY ( $1 ) ORDER BY namespace_name;

-- introspection: tables
-- values: ["{entities}"]
SELECT tbl.relname AS table_name, namespace.nspname as namespace, (tbl.relhassubclass and tbl.relkind = 'p') as is_partition, (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass, tbl.relrowsecurity as has_row_level_security, reloptions, obj_description(tbl.oid, 'pg_class') as description
FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace WHERE ( tbl.relkind = 'r' OR tbl.relkind = 'p' ) AND namespace.nspname = ANY ( $1 ) ORDER BY namespace, table_name;

-- introspection: views
-- values: ["{entities}"]
SELECT views.viewname AS view_name, views.definition AS view_sql, views.schemaname AS namespace, obj_description(class.oid, 'pg_class') AS description FROM pg_catalog.pg_views views
INNER JOIN pg_catalog.pg_namespace ns ON views.schemaname = ns.nspname INNER JOIN pg_catalog.pg_class class ON class.relnamespace = ns.oid AND class.relname = views.viewname WHERE schemaname = ANY ( $1 );

-- introspection: columns
-- values: ["{entities}"]
SELECT oid.namespace, info.table_name, info.column_name, format_type(att.atttypid, att.atttypmod) as formatted_type, info.numeric_precision, info.numeric_scale, info.numeric_precision_radix, info.datetime_precision, info.data_type, info.udt_schema as type_schema_name, info.udt_name as full_data_type,
  pg_get_expr(attdef.adbin, attdef.adrelid) AS column_default, info.is_nullable, info.is_identity, info.character_maximum_length, col_description(att.attrelid, ordinal_position) AS description
FROM information_schema.columns info JOIN pg_attribute att ON att.attname = info.column_name JOIN (
  SELECT pg_class.oid, relname, pg_namespace.nspname as namespace FROM pg_class JOIN pg_namespace on pg_namespace.oid = pg_class.relnamespace AND pg_namespace.nspname = ANY ( $1 ) WHERE reltype > 0
) as oid on oid.oid = att.attrelid AND relname = info.table_name AND namespace = info.table_schema LEFT OUTER JOIN pg_attrdef attdef ON attdef.adrelid = att.attrelid AND attdef.adnum = att.attnum AND table_schema = namespace
WHERE table_schema = ANY ( $1 ) ORDER BY namespace, table_name, ordinal_position;

-- introspection: foreign keys
-- values: ["{entities}"]
SELECT con.oid > 0 AS "con_id", att2.attname AS "child_column", cl.relname AS "parent_table", att.attname AS "parent_column", con.confdeltype, con.confupdtype, rel_ns.nspname AS "referenced_schema_name", conname AS constraint_name, child, parent IS NOT NULL AS p, table_name, namespace, condeferrable, condeferred
FROM (SELECT ns.nspname AS "namespace", unnest(con1.conkey) AS "parent", unnest(con1.confkey) AS "child", cl.relname AS table_name, ns.nspname AS schema_name, generate_subscripts(con1.conkey, 1) AS colidx, con1.oid, con1.confrelid, con1.conrelid, con1.conname, con1.confdeltype, con1.confupdtype, con1.condeferrable, con1.condeferred
  FROM pg_class cl join pg_constraint con1 on con1.conrelid = cl.oid join pg_namespace ns on cl.relnamespace = ns.oid WHERE ns.nspname = ANY ( $1 ) and con1.contype = 'f' ORDER BY colidx) con
JOIN pg_attribute att on att.attrelid = con.confrelid and att.attnum = con.child JOIN pg_class cl on cl.oid = con.confrelid JOIN pg_attribute att2 on att2.attrelid = con.conrelid and att2.attnum = con.parent JOIN pg_class rel_cl on con.confrelid = rel_cl.oid JOIN pg_namespace rel_ns on rel_cl.relnamespace = rel_ns.oid
ORDER BY namespace, table_name, constraint_name, con.colidx;

-- introspection: indexes
-- values: ["{entities}"]
WITH rawindex AS (SELECT indrelid, indexrelid, indisunique, indisprimary, unnest(indkey) AS indkeyid, generate_subscripts(indkey, 1) AS indkeyidx, unnest(indclass) AS indclass, unnest(indoption) AS indoption FROM pg_index WHERE indpred IS NULL AND NOT indisexclusion AND array_position(indkey::int2[], 0::int2) IS NULL)
SELECT schemainfo.nspname AS namespace, indexinfo.relname AS index_name, tableinfo.relname AS table_name, columninfo.attname AS column_name, rawindex.indisunique AS is_unique, rawindex.indisprimary AS is_primary_key, rawindex.indkeyidx AS column_index, opclass.opcname AS opclass, opclass.opcdefault AS opcdefault, indexaccess.amname AS index_algo,
  CASE rawindex.indoption & 1 WHEN 1 THEN 'DESC' ELSE 'ASC' END AS column_order, pc.condeferrable AS condeferrable
FROM rawindex INNER JOIN pg_class AS tableinfo ON tableinfo.oid = rawindex.indrelid INNER JOIN pg_class AS indexinfo ON indexinfo.oid = rawindex.indexrelid INNER JOIN pg_namespace AS schemainfo ON schemainfo.oid = tableinfo.relnamespace LEFT JOIN pg_attribute AS columninfo ON columninfo.attrelid = tableinfo.oid AND columninfo.attnum = rawindex.indkeyid
INNER JOIN pg_am AS indexaccess ON indexaccess.oid = indexinfo.relam LEFT JOIN pg_opclass AS opclass ON opclass.oid = rawindex.indclass LEFT JOIN pg_constraint pc ON rawindex.indexrelid = pc.conindid AND pc.contype <> 'f'
WHERE schemainfo.nspname = ANY ( $1 ) ORDER BY namespace, table_name, index_name, column_index;

-- introspection: enumerations
-- values: ["{entities}"]
SELECT t.typname as name, e.enumlabel as value, n.nspname as namespace FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname = ANY ( $1 ) ORDER BY e.enumsortorder;

-- introspection: sequences
-- values: ["{entities}"]
SELECT sequencename AS sequence_name, schemaname AS namespace, start_value, min_value, max_value, increment_by, cycle, cache_size FROM pg_sequences WHERE schemaname = ANY ( $1 ) ORDER BY sequence_name;

-- introspection: procedures
-- values: ["{entities}"]
SELECT p.proname AS name, n.nspname as namespace, CASE WHEN l.lanname = 'internal' THEN p.prosrc ELSE pg_get_functiondef(p.oid) END as definition FROM pg_proc p LEFT JOIN pg_namespace n ON p.pronamespace = n.oid LEFT JOIN pg_language l ON p.prolang = l.oid WHERE n.nspname = ANY ( $1 );

-- data: findMany
SELECT "entities"."customer"."id", "entities"."customer"."name", "entities"."customer"."region" FROM "entities"."customer" WHERE 1=1 ORDER BY "entities"."customer"."id" ASC OFFSET 0;

-- data: findUnique
-- values: ["1", "1", "0"]
SELECT "entities"."customer"."id", "entities"."customer"."name" FROM "entities"."customer" WHERE ("entities"."customer"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3;

-- data: the relation of an include
-- values: ["1", "2", "5", "0"]
SELECT "entities"."order"."id", "entities"."order"."customer_id", "entities"."order"."amount" FROM "entities"."order" WHERE "entities"."order"."customer_id" IN ($1,$2,$3) ORDER BY "entities"."order"."id" ASC OFFSET $4;

-- data: some of a relation
-- values: ["paid", "0"]
SELECT "entities"."customer"."id" FROM "entities"."customer" WHERE ("entities"."customer"."id") IN (SELECT "t1"."customer_id" FROM "entities"."order" AS "t1" WHERE ("t1"."status" = $1 AND "t1"."customer_id" IS NOT NULL)) ORDER BY "entities"."customer"."id" ASC OFFSET $2;

-- data: none of a relation
-- values: ["buy", "0"]
SELECT "entities"."customer"."id" FROM "entities"."customer" WHERE ("entities"."customer"."id") NOT IN (SELECT "t1"."customer_id" FROM "entities"."event" AS "t1" WHERE ("t1"."kind" = $1 AND "t1"."customer_id" IS NOT NULL)) ORDER BY "entities"."customer"."id" ASC OFFSET $2;

-- data: a filter on a relation by a left join
-- values: ["eu", "5", "0"]
SELECT "entities"."order"."id" FROM "entities"."order" LEFT JOIN "entities"."customer" AS "j0" ON ("j0"."id") = ("entities"."order"."customer_id") WHERE ("j0"."region" = $1 AND ("j0"."id" IS NOT NULL)) ORDER BY "entities"."order"."id" ASC LIMIT $2 OFFSET $3;

-- data: relationLoadStrategy join
SELECT "t1"."id", "t1"."name", "customer_orders"."__prisma_data__" AS "orders" FROM "entities"."customer" AS "t1"
LEFT JOIN LATERAL (SELECT COALESCE(JSONB_AGG("__prisma_data__" ORDER BY "__prisma_data__" ->> 'id'), '[]') AS "__prisma_data__" FROM (SELECT "t4"."__prisma_data__" FROM (SELECT JSONB_BUILD_OBJECT('id', "t3"."id", 'status', "t3"."status") AS "__prisma_data__" FROM (SELECT "t2".* FROM "entities"."order" AS "t2" WHERE "t1"."id" = "t2"."customer_id") AS "t3") AS "t4") AS "t5") AS "customer_orders" ON TRUE ORDER BY "t1"."id";

-- data: count with a limit
-- values: ["0"]
SELECT COUNT(*) AS "_count$_all" FROM (SELECT "entities"."order"."id" FROM "entities"."order" WHERE 1=1 OFFSET $1) AS "sub";

-- data: aggregate
-- values: ["0"]
SELECT COUNT(*), SUM("amount"), AVG("quantity"), MIN("placed_at"), MAX("placed_at") FROM (SELECT "entities"."order"."id", "entities"."order"."amount", "entities"."order"."quantity", "entities"."order"."placed_at" FROM "entities"."order" WHERE 1=1 OFFSET $1) AS "sub";

-- data: groupBy with having
-- values: ["1", "0"]
SELECT COUNT("entities"."order"."id"), "entities"."order"."region" FROM "entities"."order" WHERE 1=1 GROUP BY "entities"."order"."region" HAVING COUNT("entities"."order"."id") > $1 ORDER BY "entities"."order"."region" ASC OFFSET $2;

-- data: contains, insensitive
-- values: ["%a%", "0"]
SELECT "entities"."customer"."id" FROM "entities"."customer" WHERE "entities"."customer"."name"::text ILIKE $1 ORDER BY "entities"."customer"."id" ASC OFFSET $2;

-- data: order by the count of a relation
SELECT "entities"."customer"."id" FROM "entities"."customer" LEFT JOIN (SELECT "entities"."order"."customer_id", COUNT(*) AS "orderby_aggregator" FROM "entities"."order" WHERE 1=1 GROUP BY "entities"."order"."customer_id") AS "orderby_1_order" ON ("entities"."customer"."id" = "orderby_1_order"."customer_id") WHERE 1=1 ORDER BY COALESCE("orderby_1_order"."orderby_aggregator", 0) ASC, "entities"."customer"."id" ASC;

-- data: a cursor
-- values: ["20", "3", "0"]
SELECT "entities"."order"."id" FROM "entities"."order", (SELECT "entities"."order"."id" AS "order_id_0" FROM "entities"."order" WHERE ("entities"."order"."id") = ($1)) AS "order_by_cmp" WHERE "entities"."order"."id" >= "order_by_cmp"."order_id_0" ORDER BY "entities"."order"."id" ASC LIMIT $2 OFFSET $3;

-- session: an interactive transaction
BEGIN;
SELECT 1;
COMMIT;

-- session: isolation
BEGIN;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
ROLLBACK;
