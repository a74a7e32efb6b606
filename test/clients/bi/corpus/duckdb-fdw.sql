-- tool: postgres_fdw and DuckDB (written, simple)
-- session: postgres_fdw sets its session
-- refused: the search path is fixed to the gateway's schemas, and postgres_fdw cannot be configured to leave it alone
SET search_path = pg_catalog;

-- session: postgres_fdw sets formats
SET timezone = 'GMT';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET extra_float_digits = 3;

-- session: postgres_fdw reads by a cursor
START TRANSACTION ISOLATION LEVEL REPEATABLE READ;
DECLARE c1 CURSOR FOR
SELECT id, name FROM entities.customer WHERE ((region = 'eu'::text)) ORDER BY id ASC NULLS LAST;
FETCH 100 FROM c1;
CLOSE c1;
COMMIT TRANSACTION;

-- session: postgres_fdw estimates
EXPLAIN SELECT id FROM entities."order";

-- session: DuckDB exports a snapshot
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT pg_is_in_recovery();
COMMIT;

-- introspection: DuckDB lists schemas and tables
SELECT oid > 0, nspname FROM pg_namespace WHERE nspname = 'entities' ORDER BY oid;

-- introspection: DuckDB reads columns
SELECT pg_namespace.nspname, relname, relpages >= 0, attname, pg_type.typname type_name, atttypmod type_modifier, pg_attribute.attndims ndim, attnum, pg_attribute.attnotnull AS notnull, NULL constraint_id, NULL constraint_type, NULL constraint_key
FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid JOIN pg_type ON atttypid=pg_type.oid WHERE attnum > 0 AND relkind IN ('r', 'v', 'm', 'f', 'p') AND pg_namespace.nspname = 'entities' ORDER BY 1, 2, attnum;

-- introspection: postgres_fdw imports a schema
SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid), attgenerated, collname, collnsp.nspname FROM pg_class c JOIN pg_namespace n ON relnamespace = n.oid LEFT JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped LEFT JOIN pg_attrdef ad ON adrelid = c.oid AND adnum = attnum
LEFT JOIN pg_collation coll ON coll.oid = attcollation LEFT JOIN pg_namespace collnsp ON collnsp.oid = collnamespace WHERE c.relkind IN ('r', 'v', 'f', 'm', 'p') AND n.nspname = 'entities' AND (NOT c.relispartition) ORDER BY c.relname, a.attnum;

-- data: postgres_fdw pushes a join down
SELECT r1.id, r2.name FROM (entities."order" r1 INNER JOIN entities.customer r2 ON (((r1.customer_id = r2.id)) AND ((r1.quantity > 10)))) ORDER BY r1.id ASC NULLS LAST;

-- data: postgres_fdw pushes an aggregate down
SELECT count(*), region FROM entities."order" GROUP BY 2;

-- data: postgres_fdw pushes a semi join down
SELECT r1.id FROM entities.customer r1 WHERE EXISTS (SELECT NULL FROM entities."order" r2 WHERE ((r2.quantity > 30)) AND ((r1.id = r2.customer_id))) ORDER BY 1;

-- data: DuckDB reads pages of a table
-- refused: a row's position on disk would reveal hidden rows; set `pg_use_ctid_scan = false`
SELECT "id", "name" FROM "entities"."customer" WHERE ctid BETWEEN '(0,0)'::tid AND '(4294967295,0)'::tid;

-- data: DuckDB pushes filters down
SELECT "id", "amount" FROM "entities"."order" WHERE ("quantity" >= 5 AND "quantity" IS NOT NULL) AND "region" IN ('eu', 'us') ORDER BY "id";
