-- tool: Drizzle (captured, extended)
-- data: 1, select "id", "name", "email", "born", "region", "signed_up" from "enti
select "id", "name", "email", "born", "region", "signed_up" from "entities"."customer" "customer";

-- data: 2, select "customer"."id", "customer"."name", "customer"."email", "custom
select "customer"."id", "customer"."name", "customer"."email", "customer"."born", "customer"."region", "customer"."signed_up", "customer_orders"."data" as "orders" from "entities"."customer" "customer" left join lateral (select coalesce(json_agg(json_build_array("customer_orders"."id", "customer_orders"."customer_id", "customer_orders"."region", "customer_orders"."status", "customer_orders"."quantity", "customer_orders"."amount", "customer_orders"."placed_at", "customer_orders"."note")), '[]'::json) as "data" from "entities"."order" "customer_orders" where "customer_orders"."customer_id" = "customer"."id") "customer_orders" on true order by "customer"."id" asc;

-- data: 3, select "customer"."id", "customer"."name", "customer_orders"."data" as
-- values: ["10","2"]
select "customer"."id", "customer"."name", "customer_orders"."data" as "orders" from "entities"."customer" "customer" left join lateral (select coalesce(json_agg(json_build_array("customer_orders"."id", "customer_orders"."amount") order by "customer_orders"."id" desc), '[]'::json) as "data" from (select * from "entities"."order" "customer_orders" where ("customer_orders"."customer_id" = "customer"."id" and "customer_orders"."quantity" > $1) order by "customer_orders"."id" desc limit $2) "customer_orders") "customer_orders" on true order by "customer"."id" asc;

-- data: 4, select "order"."id", "order"."customer_id", "order"."region", "order".
-- values: ["1","1"]
select "order"."id", "order"."customer_id", "order"."region", "order"."status", "order"."quantity", "order"."amount", "order"."placed_at", "order"."note", "order_customer"."data" as "customer", "order_payments"."data" as "payments" from "entities"."order" "order" left join lateral (select json_build_array("order_customer"."id", "order_customer"."name", "order_customer"."email", "order_customer"."born", "order_customer"."region", "order_customer"."signed_up") as "data" from (select * from "entities"."customer" "order_customer" where "order_customer"."id" = "order"."customer_id" limit $1) "order_customer") "order_customer" on true left join lateral (select coalesce(json_agg(json_build_array("order_payments"."id", "order_payments"."order_id", "order_payments"."method", "order_payments"."paid")), '[]'::json) as "data" from "entities"."payment" "order_payments" where "order_payments"."order_id" = "order"."id") "order_payments" on true order by "order"."id" asc limit $2;

-- data: 5, select "order"."id", "order"."customer_id", "order"."region", "order".
-- values: ["1","5","5"]
select "order"."id", "order"."customer_id", "order"."region", "order"."status", "order"."quantity", "order"."amount", "order"."placed_at", "order"."note", "order_customer"."data" as "customer" from "entities"."order" "order" left join lateral (select json_build_array("order_customer"."name") as "data" from (select * from "entities"."customer" "order_customer" where "order_customer"."id" = "order"."customer_id" limit $1) "order_customer") "order_customer" on true order by "order"."id" asc limit $2 offset $3;

-- data: 6, select "category"."id", "category"."parent_id", "category"."name", "ca
select "category"."id", "category"."parent_id", "category"."name", "category_products"."data" as "products" from "entities"."category" "category" left join lateral (select coalesce(json_agg(json_build_array("category_products"."id", "category_products"."category_id", "category_products"."label", "category_products"."price", "category_products"."specs", upper(label))), '[]'::json) as "data" from "entities"."product" "category_products" where "category_products"."category_id" = "category"."id") "category_products" on true order by "category"."id" asc;

-- data: 7, select "customer"."id", "customer_orders"."data" as "orders" from "ent
-- values: ["eu"]
select "customer"."id", "customer_orders"."data" as "orders" from "entities"."customer" "customer" left join lateral (select coalesce(json_agg(json_build_array("customer_orders"."id", "customer_orders_payments"."data")), '[]'::json) as "data" from "entities"."order" "customer_orders" left join lateral (select coalesce(json_agg(json_build_array("customer_orders_payments"."paid")), '[]'::json) as "data" from "entities"."payment" "customer_orders_payments" where "customer_orders_payments"."order_id" = "customer_orders"."id") "customer_orders_payments" on true where "customer_orders"."customer_id" = "customer"."id") "customer_orders" on true where "customer"."region" = $1 order by "customer"."id" asc;

-- data: 8, select "id", "customer_id", "region", "status", "quantity", "amount", 
-- values: ["paid","5","10"]
select "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" from "entities"."order" where ("entities"."order"."status" = $1 and "entities"."order"."quantity" > $2) order by "entities"."order"."placed_at" desc limit $3;

-- data: 9, select "entities"."order"."id", "entities"."customer"."name" from "ent
-- values: ["10"]
select "entities"."order"."id", "entities"."customer"."name" from "entities"."order" left join "entities"."customer" on "entities"."order"."customer_id" = "entities"."customer"."id" order by "entities"."order"."id" limit $1;

-- data: 10, select "region", count(*), sum("amount"), avg("quantity"), count(disti
-- values: ["1"]
select "region", count(*), sum("amount"), avg("quantity"), count(distinct "customer_id") from "entities"."order" group by "entities"."order"."region" having count(*) > $1 order by "entities"."order"."region";

-- data: 11, select "id", "name", "email", "born", "region", "signed_up" from "enti
-- values: ["a%","u%"]
select "id", "name", "email", "born", "region", "signed_up" from "entities"."customer" where ("entities"."customer"."name" ilike $1 or "entities"."customer"."region" like $2 or "entities"."customer"."born" is null) order by "entities"."customer"."id";

-- data: 12, select "id", "customer_id", "region", "status", "quantity", "amount", 
-- values: ["new","paid"]
select "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" from "entities"."order" where "entities"."order"."status" in ($1, $2) order by "entities"."order"."id";

-- data: 13, select "id", "customer_id", "region", "status", "quantity", "amount", 
-- values: ["3","9"]
select "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" from "entities"."order" where "entities"."order"."quantity" between $1 and $2 order by "entities"."order"."id";

-- data: 14, select distinct "region" from "entities"."customer" order by "entities
select distinct "region" from "entities"."customer" order by "entities"."customer"."region";

-- data: 15, select distinct on ("entities"."order"."customer_id") "customer_id", "
select distinct on ("entities"."order"."customer_id") "customer_id", "id" from "entities"."order" order by "entities"."order"."customer_id", "entities"."order"."placed_at" desc;

-- data: 16, select "entities"."customer"."name", "last" from "entities"."customer"
select "entities"."customer"."name", "last" from "entities"."customer" inner join (select "customer_id", max("placed_at") as "last" from "entities"."order" group by "entities"."order"."customer_id") "sq" on "entities"."customer"."id" = "sq"."customer_id" order by "entities"."customer"."id";

-- data: 17, with "w" as (select "id", "customer_id", "region", "status", "quantity
-- values: ["eu"]
with "w" as (select "id", "customer_id", "region", "status", "quantity", "amount", "placed_at", "note" from "entities"."order" where "entities"."order"."region" = $1) select count(*) from "w";

-- data: 18, select "id", "name", "email", "born", "region", "signed_up" from "enti
select "id", "name", "email", "born", "region", "signed_up" from "entities"."customer" where not exists (select 1 from "entities"."order" where "entities"."order"."customer_id" = "entities"."customer"."id") order by "entities"."customer"."id";

-- data: 19, select count(*) as count from "entities"."order" where "entities"."ord
-- values: ["new"]
select count(*) as count from "entities"."order" where "entities"."order"."status" = $1;

-- data: 20, (select "id" from "entities"."order" where "entities"."order"."region"
-- values: ["eu","5"]
(select "id" from "entities"."order" where "entities"."order"."region" = $1) union (select "id" from "entities"."payment") order by 1 asc  limit $2;

-- data: 21, select "id", "category_id", "label", "price", "specs" from "entities".
select "id", "category_id", "label", "price", "specs" from "entities"."product" order by "entities"."product"."id";

-- session: 22, commit
begin isolation level read committed read only;
commit;

-- data: 23, select "id", "specs"->>'weight' from "entities"."product" order by "en
select "id", "specs"->>'weight' from "entities"."product" order by "entities"."product"."id";
