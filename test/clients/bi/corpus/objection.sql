-- tool: Objection (captured, extended)
-- session: 1, select version()
select version();

-- session: 2, set search_path to "entities"
set search_path to "entities";

-- data: 3, select "customer".* from "customer" order by "id" asc
select "customer".* from "customer" order by "id" asc;

-- data: 4, select "order".* from "order" where "order"."customer_id" in ($1, $2, 
-- values: ["1","2","4","5","6","8","9","10","12"]
select "order".* from "order" where "order"."customer_id" in ($1, $2, $3, $4, $5, $6, $7, $8, $9);

-- introspection: 5, select * from information_schema.columns where table_name = $1 and tab
-- values: ["customer"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();

-- introspection: 6, select * from information_schema.columns where table_name = $1 and tab
-- values: ["order"]
select * from information_schema.columns where table_name = $1 and table_catalog = current_database() and table_schema = current_schema();

-- data: 7, select "customer"."id" as "id", "customer"."name" as "name", "customer
-- values: ["paid"]
select "customer"."id" as "id", "customer"."name" as "name", "customer"."email" as "email", "customer"."born" as "born", "customer"."region" as "region", "customer"."signed_up" as "signed_up", "orders"."id" as "orders:id", "orders"."customer_id" as "orders:customer_id", "orders"."region" as "orders:region", "orders"."status" as "orders:status", "orders"."quantity" as "orders:quantity", "orders"."amount" as "orders:amount", "orders"."discount" as "orders:discount", "orders"."placed_at" as "orders:placed_at", "orders"."shipped_on" as "orders:shipped_on", "orders"."note" as "orders:note" from "customer" left join "order" as "orders" on "orders"."customer_id" = "customer"."id" where "orders"."status" = $1 order by "customer"."id" asc;

-- data: 8, select "order"."id", "customer"."name" from "order" inner join "custom
-- values: ["eu"]
select "order"."id", "customer"."name" from "order" inner join "customer" on "customer"."id" = "order"."customer_id" where "customer"."region" = $1 order by "order"."id" asc;

-- data: 9, select "customer"."id", (select count(*) from "order" as "orders" wher
select "customer"."id", (select count(*) from "order" as "orders" where "orders"."customer_id" = "customer"."id") as "n" from "customer" order by "id" asc;

-- data: 10, select "customer".* from "customer" where exists (select "orders".* fr
-- values: ["30"]
select "customer".* from "customer" where exists (select "orders".* from "order" as "orders" where "orders"."customer_id" = "customer"."id" and "quantity" > $1) order by "id" asc;

-- data: 11, select "order".* from "order" order by "id" asc limit $1 offset $2
-- values: ["5","5"]
select "order".* from "order" order by "id" asc limit $1 offset $2;

-- data: 12, select count(*) as "count" from (select "order".* from "order") as "te
select count(*) as "count" from (select "order".* from "order") as "temp";

-- data: 13, select "product".* from "product" where CAST("specs"#>>'{origin}' AS t
-- values: ["in"]
select "product".* from "product" where CAST("specs"#>>'{origin}' AS text) = $1 order by "id" asc;
