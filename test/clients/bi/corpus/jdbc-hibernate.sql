-- tool: Hibernate over JDBC (written, extended)
-- session: the driver connects
SET extra_float_digits = 3;
SET application_name = 'PostgreSQL JDBC Driver';
SHOW TRANSACTION ISOLATION LEVEL;

-- session: read only
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;
BEGIN READ ONLY;
COMMIT;

-- session: is it alive
SELECT 1;

-- session: sequences are looked for
select * from information_schema.sequences where sequence_schema = 'entities';

-- data: an entity by its key
-- values: ["1"]
select c1_0.id,c1_0.born,c1_0.name,c1_0.region from entities.customer c1_0 where c1_0.id=$1;

-- data: a fetch join
select distinct c1_0.id,c1_0.name,o1_0.customer_id,o1_0.id,o1_0.amount from entities.customer c1_0 left join entities."order" o1_0 on c1_0.id=o1_0.customer_id order by c1_0.id,o1_0.id;

-- data: pages
-- values: ["10", "5"]
select o1_0.id,o1_0.amount from entities."order" o1_0 order by o1_0.id offset $1 rows fetch first $2 rows only;

-- data: batch of keys as an array
-- values: ["{1,2,5}"]
select o1_0.customer_id,o1_0.id from entities."order" o1_0 where o1_0.customer_id = any ($1::int[]) order by 2;

-- data: criteria: like, escape, lower
-- values: ["%a%"]
select c1_0.id from entities.customer c1_0 where lower(c1_0.name) like $1 escape '' order by c1_0.id;

-- data: a tuple projection with case
select o1_0.region,sum(case when o1_0.status='paid' then o1_0.amount else cast(0 as numeric(38,2)) end),count(o1_0.id) from entities."order" o1_0 group by o1_0.region order by 1;

-- data: exists
select c1_0.id from entities.customer c1_0 where exists(select 1 from entities."order" o1_0 where c1_0.id=o1_0.customer_id and o1_0.quantity>30) order by 1;

-- data: cross join with where
select c1_0.name,count(*) from entities.customer c1_0,entities."order" o1_0 where o1_0.customer_id=c1_0.id group by c1_0.name order by c1_0.name;

-- data: extract and functions
select extract(year from o1_0.placed_at),cast(o1_0.amount as integer),coalesce(o1_0.note,''),o1_0.status||'-'||o1_0.region from entities."order" o1_0 where o1_0.id<5 order by o1_0.id;

-- data: window and lateral of HQL
select o1_0.id,row_number() over(partition by o1_0.customer_id order by o1_0.placed_at) from entities."order" o1_0 order by 1;

-- data: for share
-- refused: rows are not locked, because nothing can be written
select c1_0.id from entities.customer c1_0 where c1_0.id=1 for share;

-- data: a scalar subquery in select and set operations
(select o1_0.status from entities."order" o1_0) except (select e1_0.kind from entities.event e1_0) order by 1;
