-- tool: postgres.js (captured, extended)
-- introspection: 1, select b.oid, b.typarray from pg_catalog.pg_type a left join pg_catalo
select b.oid, b.typarray
      from pg_catalog.pg_type a
      left join pg_catalog.pg_type b on b.oid = a.typelem
      where a.typcategory = 'A'
      group by b.oid, b.typarray
      order by b.oid;

-- data: 2, select * from customer order by id
select * from customer order by id;

-- data: 3, select id, amount from "order" where status in ($1,$2) and quantity > 
-- values: ["new","paid","5"]
select id, amount from "order" where status in ($1,$2) and quantity > $3 order by id;

-- data: 4, select "id","name" from customer where region = $1 order by id
-- values: ["eu"]
select "id","name" from customer where region = $1 order by id;

-- data: 5, select * from "order" where id = any($1) order by id
-- values: ["{\"1\",\"2\",\"3\"}"]
select * from "order" where id = any($1) order by id;

-- data: 6, select * from event where at > $1 order by id limit 5
-- values: ["2026-01-20T00:00:00.000Z"]
select * from event where at > $1 order by id limit 5;

-- data: 7, select count(*) from product
select count(*) from product;

-- data: 8, select 1 as x
select 1 as x;

-- session: 9, savepoint "s0"
begin read only;
savepoint "s0";
commit;

-- data: 10, select id from "order" order by id
select id from "order" order by id;
