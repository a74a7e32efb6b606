-- tool: Kysely (captured, extended)
-- introspection: 1, select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a".
-- values: ["r","v","p","^pg_","information_schema","crdb_internal","0","true","kysely_migration","kysely_migration_lock"]
select "a"."attname" as "column", "a"."attnotnull" as "not_null", "a"."atthasdef" as "has_default", "c"."relname" as "table", "c"."relkind" as "table_type", "ns"."nspname" as "schema", "typ"."typname" as "type", "dtns"."nspname" as "type_schema", col_description(a.attrelid, a.attnum) as "column_description", pg_get_serial_sequence(quote_ident(ns.nspname) || '.' || quote_ident(c.relname), a.attname) as "auto_incrementing" from "pg_catalog"."pg_attribute" as "a" inner join "pg_catalog"."pg_class" as "c" on "a"."attrelid" = "c"."oid" inner join "pg_catalog"."pg_namespace" as "ns" on "c"."relnamespace" = "ns"."oid" inner join "pg_catalog"."pg_type" as "typ" on "a"."atttypid" = "typ"."oid" inner join "pg_catalog"."pg_namespace" as "dtns" on "typ"."typnamespace" = "dtns"."oid" where "c"."relkind" in ($1, $2, $3) and "ns"."nspname" !~ $4 and "ns"."nspname" != $5 and "ns"."nspname" != $6 and has_schema_privilege(ns.nspname, 'USAGE') and "a"."attnum" >= $7 and "a"."attisdropped" != $8 and "c"."relname" != $9 and "c"."relname" != $10 order by "ns"."nspname", "c"."relname", "a"."attnum";

-- introspection: 2, select "nspname" from "pg_catalog"."pg_namespace"
select "nspname" from "pg_catalog"."pg_namespace";

-- data: 3, select * from "entities"."customer" order by "id"
select * from "entities"."customer" order by "id";

-- data: 4, select "id", (select coalesce(json_agg(agg), '[]') from (select "entit
select "id", (select coalesce(json_agg(agg), '[]') from (select "entities"."order"."id", "entities"."order"."amount" from "entities"."order" where "entities"."order"."customer_id" = "entities"."customer"."id" order by "entities"."order"."id") as agg) as "orders" from "entities"."customer" order by "id";

-- data: 5, select "entities"."order"."id", (select to_json(obj) from (select "ent
-- values: ["5"]
select "entities"."order"."id", (select to_json(obj) from (select "entities"."customer"."id", "entities"."customer"."name" from "entities"."customer" where "entities"."customer"."id" = "entities"."order"."customer_id") as obj) as "customer" from "entities"."order" order by "entities"."order"."id" limit $1;

-- data: 6, select "id", json_build_object('name', "name", 'region', "region") as 
select "id", json_build_object('name', "name", 'region', "region") as "j" from "entities"."customer" order by "id";

-- data: 7, select "entities"."order"."id", "entities"."customer"."name" as "custo
-- values: ["new","paid","20"]
select "entities"."order"."id", "entities"."customer"."name" as "customer_name" from "entities"."order" inner join "entities"."customer" on "entities"."customer"."id" = "entities"."order"."customer_id" where "entities"."order"."status" in ($1, $2) and ("entities"."order"."quantity" > $3 or "entities"."order"."note" is null) order by "entities"."order"."id";

-- data: 8, select "region", count(*) as "n", sum("amount") as "total", avg("quant
-- values: ["2"]
select "region", count(*) as "n", sum("amount") as "total", avg("quantity") as "mean", count(distinct "customer_id") as "who", max("placed_at") as "last" from "entities"."order" group by "region" having count(*) > $1 order by "region";

-- data: 9, select "id", row_number() over(partition by "customer_id" order by "pl
select "id", row_number() over(partition by "customer_id" order by "placed_at") as "rn" from "entities"."order" order by "id";

-- data: 10, select "id", case when "quantity" < $1 then $2 else $3 end as "size", 
-- values: ["10","small","big","-","10"]
select "id", case when "quantity" < $1 then $2 else $3 end as "size", coalesce("note", $4) as "note" from "entities"."order" order by "id" limit $5;

-- data: 11, with "big" as (select * from "entities"."order" where "amount" > $1) s
-- values: ["100"]
with "big" as (select * from "entities"."order" where "amount" > $1) select count(*) as "n" from "big";

-- data: 12, select distinct on ("region") "region", "id" from "entities"."customer
select distinct on ("region") "region", "id" from "entities"."customer" order by "region", "id";

-- data: 13, select "id" from "entities"."customer" where exists (select "entities"
-- values: ["buy"]
select "id" from "entities"."customer" where exists (select "entities"."event"."id" from "entities"."event" where "entities"."event"."customer_id" = "entities"."customer"."id" and "entities"."event"."kind" = $1) order by "id";

-- data: 14, select "entities"."customer"."id", "o"."oid", "o"."amount" from "entit
-- values: ["1"]
select "entities"."customer"."id", "o"."oid", "o"."amount" from "entities"."customer" left join lateral (select "entities"."order"."id" as "oid", "entities"."order"."amount" from "entities"."order" where "entities"."order"."customer_id" = "entities"."customer"."id" order by "entities"."order"."amount" desc limit $1) as "o" on true order by "entities"."customer"."id";

-- data: 15, select "status" from "entities"."order" union select "kind" as "status
select "status" from "entities"."order" union select "kind" as "status" from "entities"."event" order by "status";

-- data: 16, select "id", "specs"->'dims'->0 as "d0", "specs"->>'origin' as "origin
select "id", "specs"->'dims'->0 as "d0", "specs"->>'origin' as "origin" from "entities"."product" order by "id";

-- data: 17, select count(*) filter(where "status" = $1) as "paid" from "entities".
-- values: ["paid"]
select count(*) filter(where "status" = $1) as "paid" from "entities"."order";

-- data: 18, select * from "entities"."order" order by "amount" desc nulls last, "i
-- values: ["3","3"]
select * from "entities"."order" order by "amount" desc nulls last, "id" limit $1 offset $2;

-- data: 19, select date_trunc('month', placed_at) as "month", sum("amount") as "s"
select date_trunc('month', placed_at) as "month", sum("amount") as "s" from "entities"."order" group by date_trunc('month', placed_at) order by "month";

-- data: 20, select * from "entities"."customer" where lower(name) like $1 order by
-- values: ["%a%"]
select * from "entities"."customer" where lower(name) like $1 order by "id";

-- data: 21, select "entities"."order"."id", "entities"."payment"."paid" from "enti
-- values: ["card"]
select "entities"."order"."id", "entities"."payment"."paid" from "entities"."order" inner join "entities"."payment" on "entities"."payment"."order_id" = "entities"."order"."id" and "entities"."payment"."method" = $1 order by "entities"."order"."id";

-- data: 22, select "id" from "entities"."order" where ("region", "status") in (($1
-- values: ["eu","new","us","paid"]
select "id" from "entities"."order" where ("region", "status") in (($1, $2), ($3, $4)) order by "id";

-- data: 23, select * from "entities"."category" order by "id"
select * from "entities"."category" order by "id";

-- session: 24, commit
start transaction isolation level repeatable read read only;
commit;
