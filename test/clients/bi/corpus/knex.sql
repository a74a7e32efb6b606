-- tool: Knex (captured, extended)
-- session: 1, select version()
select version();

-- session: 2, set search_path to "entities"
set search_path to "entities";

-- introspection: 3, select * from information_schema.tables where table_name = $1 and tabl
-- values: ["customer"]
select * from information_schema.tables where table_name = $1 and table_schema = current_schema();

-- introspection: 4, select * from information_schema.tables where table_name = $1 and tabl
-- values: ["customer","entities"]
select * from information_schema.tables where table_name = $1 and table_schema = $2;

-- introspection: 5, select * from information_schema.columns where table_name = $1 and col
-- values: ["customer","name"]
select * from information_schema.columns where table_name = $1 and column_name = $2 and table_schema = current_schema();

-- introspection: 6, select * from information_schema.columns where table_name = $1 and tab
-- values: ["customer"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();

-- introspection: 7, select * from information_schema.columns where table_name = $1 and tab
-- values: ["customer","entities"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = $2;

-- data: 8, select * from "customer" order by "id" asc
select * from "customer" order by "id" asc;

-- data: 9, select * from "order" where "status" = $1 and "quantity" > $2 or "note
-- values: ["paid","5","10","1"]
select * from "order" where "status" = $1 and "quantity" > $2 or "note" is null order by "id" asc limit $3 offset $4;

-- data: 10, select "o"."id", "c"."name" from "order" as "o" inner join "customer" 
-- values: ["new","paid"]
select "o"."id", "c"."name" from "order" as "o" inner join "customer" as "c" on "c"."id" = "o"."customer_id" where "o"."status" in ($1, $2) order by "o"."id" asc;

-- data: 11, select "o"."id", "p"."paid" from "order" as "o" left join "payment" as
-- values: ["card"]
select "o"."id", "p"."paid" from "order" as "o" left join "payment" as "p" on "p"."order_id" = "o"."id" and "p"."method" = $1 order by "o"."id" asc;

-- data: 12, select "region", count(*) as "n", sum("amount") as "total", avg("quant
-- values: ["1"]
select "region", count(*) as "n", sum("amount") as "total", avg("quantity") as "mean", count(distinct "customer_id") as "who" from "order" group by "region" having count(*) > $1 order by "region" asc;

-- data: 13, with "w" as (select * from "order" where "region" = $1) select count(*
-- values: ["eu"]
with "w" as (select * from "order" where "region" = $1) select count(*) from "w";

-- data: 14, select * from "order" where "id" = $1 limit $2
-- values: ["1","1"]
select * from "order" where "id" = $1 limit $2;

-- data: 15, select "id" from "order" order by "id" asc limit $1
-- values: ["3"]
select "id" from "order" order by "id" asc limit $1;

-- data: 16, select "id", row_number() over (partition by "customer_id" order by "p
select "id", row_number() over (partition by "customer_id" order by "placed_at") as "rn" from "order" order by "id" asc;

-- data: 17, select "id", rank() over (order by amount desc) as r from "order" orde
-- values: ["5"]
select "id", rank() over (order by amount desc) as r from "order" order by "id" asc limit $1;

-- data: 18, select distinct "region" from "customer" order by "region" asc
select distinct "region" from "customer" order by "region" asc;

-- data: 19, select distinct on ("customer_id") "customer_id", "id" from "order" or
select distinct on ("customer_id") "customer_id", "id" from "order" order by "customer_id" asc, "id" asc;

-- data: 20, select "id" from "customer" where exists (select 1 from "order" where 
select "id" from "customer" where exists (select 1 from "order" where "order".customer_id = customer.id) order by "id" asc;

-- data: 21, select "id" from "customer" where "id" not in (select "customer_id" fr
-- values: ["buy"]
select "id" from "customer" where "id" not in (select "customer_id" from "event" where "customer_id" is not null and "kind" = $1) order by "id" asc;

-- data: 22, select "status" as "s" from "order" union select "kind" from "event" o
select "status" as "s" from "order" union select "kind" from "event" order by "s" asc;

-- data: 23, select count(*) from "event" where jsonb_path_query_first("props", $1)
-- values: ["$.score","5"]
select count(*) from "event" where jsonb_path_query_first("props", $1)::int > $2;

-- data: 24, select count(*) from "event" where "props" @> $1
-- values: ["{\"ab\":true}"]
select count(*) from "event" where "props" @> $1;

-- data: 25, select jsonb_path_query("specs", $1) as "origin" from "product" order 
-- values: ["$.origin"]
select jsonb_path_query("specs", $1) as "origin" from "product" order by "id" asc;

-- data: 26, select * from "order" where "placed_at" between $1 and $2 and "note" i
-- values: ["2025-11-01","2025-11-30","%1%"]
select * from "order" where "placed_at" between $1 and $2 and "note" ilike $3 order by "id" asc;

-- data: 27, select * from "category" order by "id" asc
select * from "category" order by "id" asc;

-- session: 28, COMMIT
BEGIN TRANSACTION ISOLATION LEVEL repeatable read READ ONLY;
COMMIT;

-- data: 29, with recursive "t"("id", "name") as (select "id", "name" from "categor
with recursive "t"("id", "name") as (select "id", "name" from "category" where "parent_id" is null union all select "c"."id", "c"."name" from "category" as "c" inner join "t" on "t"."id" = "c"."parent_id") select * from "t" order by "id" asc;
