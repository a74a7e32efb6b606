-- tool: psqlODBC (captured, extended)
-- session: 1, SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isol
SET DateStyle = 'ISO';SET extra_float_digits = 2;show transaction_isolation;

-- introspection: 2, select oid, typbasetype from pg_type where typname = 'lo'
select oid, typbasetype from pg_type where typname = 'lo';

-- data: 3, SELECT * FROM "entities"."customer"
SELECT * FROM "entities"."customer";

-- introspection: 4, select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnu
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.oid = <<class customer>>) inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- data: 5, SELECT "customer"."id", "customer"."name" FROM "entities"."customer" "
-- values: ["eu"]
SELECT "customer"."id", "customer"."name" FROM "entities"."customer" "customer" WHERE "customer"."region" = $1 ORDER BY "customer"."id" ASC;

-- session: 6, DEALLOCATE "_PLAN0x4297cb0"
DEALLOCATE "_PLAN0x4297cb0";

-- data: 7, SELECT "id", "amount" FROM "entities"."order" "order" WHERE ( "quantit
-- values: ["5","p%"]
SELECT "id", "amount" FROM "entities"."order" "order" WHERE ( "quantity" > $1 AND "status" LIKE $2 ) ORDER BY "id";

-- introspection: 8, select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnu
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.oid = <<class order>>) inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- data: 9, SELECT COUNT( * ), SUM( "order"."amount" ) FROM "entities"."order" "or
-- values: ["us"]
SELECT COUNT( * ), SUM( "order"."amount" ) FROM "entities"."order" "order", "entities"."customer" "customer" WHERE "order"."customer_id" = "customer"."id" AND "customer"."region" = $1;

-- data: 10, SELECT "id" FROM "entities"."order" WHERE "placed_at" >= '2025-11-01 0
SELECT "id" FROM "entities"."order" WHERE "placed_at" >= '2025-11-01 00:00:00'::timestamp AND "shipped_on" < '2026-01-01'::date ORDER BY "id";

-- data: 11, SELECT upper("name"), char_length("name"), concat("name"::text, "regio
SELECT upper("name"), char_length("name"), concat("name"::text,  "region"::text) FROM "entities"."customer" ORDER BY "id";

-- data: 12, SELECT "customer"."name", "order"."id" FROM ("entities"."customer" "cu
SELECT "customer"."name", "order"."id" FROM ("entities"."customer" "customer" LEFT OUTER JOIN "entities"."order" "order" ON "customer"."id" = "order"."customer_id") ORDER BY "customer"."id", "order"."id";

-- data: 13, SELECT * FROM "entities"."product" WHERE 0 = 1
SELECT * FROM "entities"."product" WHERE 0 = 1;

-- introspection: 14, select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnu
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.oid = <<class product>>) inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;

-- data: 15, SELECT DISTINCT "region" FROM "entities"."customer" WHERE "born" IS NO
SELECT DISTINCT "region" FROM "entities"."customer" WHERE "born" IS NOT NULL ORDER BY 1;
