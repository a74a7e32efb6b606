-- tool: SQLAlchemy (captured, simple)
-- introspection: 1, SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnames
SELECT t.oid, typarray
FROM pg_type t JOIN pg_namespace ns
    ON typnamespace = ns.oid
WHERE typname = 'hstore';

-- session: 2, select pg_catalog.version()
select pg_catalog.version();

-- session: 3, select current_schema()
select current_schema();

-- session: 4, show transaction isolation level
show transaction isolation level;

-- session: 5, show standard_conforming_strings
show standard_conforming_strings;

-- data: 6, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer ORDER BY entities.customer.id;

-- data: 7, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born, order_1.id AS order_1_id, order_1.customer_id AS order_1_customer_id, order_1.region AS order_1_region, order_1.status AS order_1_status, order_1.quantity AS order_1_quantity, order_1.amount AS order_1_amount, order_1.placed_at AS order_1_placed_at 
FROM entities.customer LEFT OUTER JOIN entities."order" AS order_1 ON entities.customer.id = order_1.customer_id ORDER BY entities.customer.id, order_1.id;

-- data: 8, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer ORDER BY entities.customer.id 
 LIMIT 3;

-- data: 9, SELECT entities."order".customer_id AS entities_order_customer_id, ent
SELECT entities."order".customer_id AS entities_order_customer_id, entities."order".id AS entities_order_id, entities."order".region AS entities_order_region, entities."order".status AS entities_order_status, entities."order".quantity AS entities_order_quantity, entities."order".amount AS entities_order_amount, entities."order".placed_at AS entities_order_placed_at 
FROM entities."order" 
WHERE entities."order".customer_id IN (1, 2, 4) ORDER BY entities."order".id;

-- data: 10, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer ORDER BY entities.customer.id 
 LIMIT 2;

-- data: 11, SELECT entities."order".id AS entities_order_id, entities."order".cust
SELECT entities."order".id AS entities_order_id, entities."order".customer_id AS entities_order_customer_id, entities."order".region AS entities_order_region, entities."order".status AS entities_order_status, entities."order".quantity AS entities_order_quantity, entities."order".amount AS entities_order_amount, entities."order".placed_at AS entities_order_placed_at, anon_1.entities_customer_id AS anon_1_entities_customer_id 
FROM (SELECT entities.customer.id AS entities_customer_id 
FROM entities.customer ORDER BY entities.customer.id 
 LIMIT 2) AS anon_1 JOIN entities."order" ON anon_1.entities_customer_id = entities."order".customer_id ORDER BY entities."order".id;

-- data: 12, SELECT anon_1.entities_customer_id AS anon_1_entities_customer_id, ano
SELECT anon_1.entities_customer_id AS anon_1_entities_customer_id, anon_1.entities_customer_name AS anon_1_entities_customer_name, anon_1.entities_customer_region AS anon_1_entities_customer_region, anon_1.entities_customer_born AS anon_1_entities_customer_born, order_1.id AS order_1_id, order_1.customer_id AS order_1_customer_id, order_1.region AS order_1_region, order_1.status AS order_1_status, order_1.quantity AS order_1_quantity, order_1.amount AS order_1_amount, order_1.placed_at AS order_1_placed_at 
FROM (SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer ORDER BY entities.customer.id 
 LIMIT 2) AS anon_1 LEFT OUTER JOIN entities."order" AS order_1 ON anon_1.entities_customer_id = order_1.customer_id ORDER BY anon_1.entities_customer_id, order_1.id;

-- data: 13, SELECT entities."order".id AS entities_order_id, entities."order".cust
SELECT entities."order".id AS entities_order_id, entities."order".customer_id AS entities_order_customer_id, entities."order".region AS entities_order_region, entities."order".status AS entities_order_status, entities."order".quantity AS entities_order_quantity, entities."order".amount AS entities_order_amount, entities."order".placed_at AS entities_order_placed_at 
FROM entities."order" JOIN entities.customer ON entities.customer.id = entities."order".customer_id 
WHERE entities.customer.region = 'eu' AND entities."order".status IN ('new', 'paid') ORDER BY entities."order".id;

-- data: 14, SELECT entities."order".region AS entities_order_region, count(entitie
SELECT entities."order".region AS entities_order_region, count(entities."order".id) AS count_1, sum(entities."order".amount) AS sum_1 
FROM entities."order" GROUP BY entities."order".region 
HAVING count(*) > 1 ORDER BY entities."order".region;

-- data: 15, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer 
WHERE EXISTS (SELECT 1 
FROM entities."order" 
WHERE entities.customer.id = entities."order".customer_id AND entities."order".quantity > 30) ORDER BY entities.customer.id;

-- data: 16, SELECT entities.customer.id AS entities_customer_id, entities.customer
SELECT entities.customer.id AS entities_customer_id, entities.customer.name AS entities_customer_name, entities.customer.region AS entities_customer_region, entities.customer.born AS entities_customer_born 
FROM entities.customer 
WHERE NOT (EXISTS (SELECT 1 
FROM entities."order" 
WHERE entities.customer.id = entities."order".customer_id)) ORDER BY entities.customer.id;

-- data: 17, SELECT count(*) AS count_1 FROM (SELECT entities."order".id AS entitie
SELECT count(*) AS count_1 
FROM (SELECT entities."order".id AS entities_order_id, entities."order".customer_id AS entities_order_customer_id, entities."order".region AS entities_order_region, entities."order".status AS entities_order_status, entities."order".quantity AS entities_order_quantity, entities."order".amount AS entities_order_amount, entities."order".placed_at AS entities_order_placed_at 
FROM entities."order" 
WHERE EXISTS (SELECT 1 
FROM entities.customer 
WHERE entities.customer.id = entities."order".customer_id AND entities.customer.name = 'Ada') ORDER BY entities."order".id) AS anon_1;

-- data: 18, SELECT date_trunc('month', entities."order".placed_at) AS m, count(*) 
SELECT date_trunc('month', entities."order".placed_at) AS m, count(*) AS count_1 
FROM entities."order" GROUP BY m ORDER BY m;

-- data: 19, SELECT entities."order".id AS entities_order_id, row_number() OVER (PA
SELECT entities."order".id AS entities_order_id, row_number() OVER (PARTITION BY entities."order".customer_id ORDER BY entities."order".placed_at DESC) AS rn 
FROM entities."order" ORDER BY entities."order".id;

-- data: 20, SELECT entities."order".id AS entities_order_id, CASE WHEN (entities."
SELECT entities."order".id AS entities_order_id, CASE WHEN (entities."order".quantity < 10) THEN 'small' ELSE 'big' END AS size 
FROM entities."order" ORDER BY entities."order".id 
 LIMIT 5;

-- data: 21, SELECT entities.customer.name ILIKE '%a%' AS anon_1, entities.customer
SELECT entities.customer.name ILIKE '%a%' AS anon_1, entities.customer.born IS NULL AS anon_2 
FROM entities.customer ORDER BY entities.customer.id;

-- data: 22, SELECT EXISTS (SELECT * FROM entities."order" WHERE entities."order".s
SELECT EXISTS (SELECT * 
FROM entities."order" 
WHERE entities."order".status = 'lost') AS anon_1;

-- data: 23, SELECT count(*) AS count_1 FROM (SELECT DISTINCT entities."order".cust
SELECT count(*) AS count_1 
FROM (SELECT DISTINCT entities."order".customer_id AS customer_id 
FROM entities."order") AS anon_1;

-- data: 24, SELECT entities."order".status FROM entities."order" UNION ALL SELECT 
SELECT entities."order".status 
FROM entities."order" UNION ALL SELECT entities.customer.region 
FROM entities.customer ORDER BY status 
 LIMIT 5;

-- data: 25, SELECT entities."order".id FROM entities."order" WHERE entities."order
SELECT entities."order".id 
FROM entities."order" 
WHERE entities."order".amount > (SELECT avg(entities."order".amount) AS avg_1 
FROM entities."order") ORDER BY entities."order".id;

-- data: 26, SELECT CAST(entities."order".amount AS INTEGER) AS amount, coalesce(en
SELECT CAST(entities."order".amount AS INTEGER) AS amount, coalesce(entities."order".status, 'x') AS coalesce_1 
FROM entities."order" ORDER BY entities."order".id 
 LIMIT 3 OFFSET 2;

-- data: 27, SELECT DISTINCT entities."order".status FROM entities."order" ORDER BY
SELECT DISTINCT entities."order".status 
FROM entities."order" ORDER BY entities."order".status;

-- data: 28, SELECT entities.customer.id, entities."order".id AS id_1 FROM entities
SELECT entities.customer.id, entities."order".id AS id_1 
FROM entities.customer LEFT OUTER JOIN entities."order" ON entities."order".customer_id = entities.customer.id AND entities."order".status = 'paid' ORDER BY entities.customer.id, entities."order".id;

-- data: 29, WITH top AS (SELECT entities."order".customer_id AS customer_id, sum(e
WITH top AS 
(SELECT entities."order".customer_id AS customer_id, sum(entities."order".amount) AS spend 
FROM entities."order" GROUP BY entities."order".customer_id)
 SELECT entities.customer.name, top.spend 
FROM entities.customer JOIN top ON top.customer_id = entities.customer.id ORDER BY entities.customer.id;

-- data: 30, SELECT entities.customer.id, l.id AS id_1 FROM entities.customer JOIN 
SELECT entities.customer.id, l.id AS id_1 
FROM entities.customer JOIN LATERAL (SELECT order_1.id AS id 
FROM entities."order" AS order_1 
WHERE order_1.customer_id = entities.customer.id ORDER BY order_1.amount DESC 
 LIMIT 1) AS l ON true ORDER BY entities.customer.id;
