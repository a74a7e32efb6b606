-- tool: dbt and Cube (written, simple)
-- session: connects
BEGIN;
ROLLBACK;

-- session: runs in a read-only way
SET TRANSACTION READ ONLY;
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY;

-- session: builds a view
-- refused: the gateway never writes; build a project's models in the database itself
CREATE VIEW entities.my_model AS SELECT 1;

-- introspection: dbt lists relations
select 'osl' as database, tablename as name, schemaname as schema, 'table' as type from pg_tables where schemaname ilike 'entities' union all select 'osl' as database, viewname as name, schemaname as schema, 'view' as type from pg_views where schemaname ilike 'entities' union all select 'osl' as database, matviewname as name, schemaname as schema, 'materialized_view' as type from pg_matviews where schemaname ilike 'entities';

-- introspection: dbt lists schemas
select distinct nspname from pg_namespace where nspname !~ '^pg_' order by 1;

-- introspection: dbt describes columns
select column_name, data_type, character_maximum_length, numeric_precision, numeric_scale from "osl".INFORMATION_SCHEMA.columns where table_name = 'order' and table_schema = 'entities' order by ordinal_position;

-- introspection: Cube lists columns
SELECT columns.column_name as "column_name", columns.table_name as "table_name", columns.table_schema as "table_schema", columns.data_type as "data_type" FROM information_schema.columns WHERE columns.table_schema NOT IN ('pg_catalog', 'information_schema', 'mysql', 'performance_schema', 'sys', 'INFORMATION_SCHEMA') ORDER BY 3, 2, 1;

-- introspection: Cube reads types
SELECT oid, typname FROM pg_type WHERE typname IN ('hll', 'int4', 'text') ORDER BY oid;

-- data: dbt test: unique
select count(*) as failures, count(*) != 0 as should_warn, count(*) != 0 as should_error from ( select id as unique_field, count(*) as n_records from "osl"."entities"."order" where id is not null group by id having count(*) > 1 ) dbt_internal_test;

-- data: dbt test: not null
select count(*) as failures from ( select name from "osl"."entities"."customer" where name is null ) dbt_internal_test;

-- data: dbt test: accepted values
select count(*) as failures from ( with all_values as ( select status as value_field, count(*) as n_records from "osl"."entities"."order" group by status ) select * from all_values where value_field not in ( 'new','paid','shipped','returned' ) ) dbt_internal_test;

-- data: dbt test: relationships
select count(*) as failures from ( with child as ( select customer_id as from_field from "osl"."entities"."order" where customer_id is not null ), parent as ( select id as to_field from "osl"."entities"."customer" ) select from_field from child left join parent on child.from_field = parent.to_field where parent.to_field is null ) dbt_internal_test;

-- data: dbt show
select * from ( select id, amount from "osl"."entities"."order" order by id ) as model_limit_subq limit 5;

-- data: dbt_utils.date_spine
with rawdata as ( with p as ( select 0 as generated_number union all select 1 ), unioned as ( select p0.generated_number * power(2, 0) + p1.generated_number * power(2, 1) + 1 as generated_number from p as p0 cross join p as p1 ) select * from unioned where generated_number <= 3 order by generated_number ), all_periods as ( select ( cast('2025-11-01' as date) + ((interval '1 day') * (row_number() over (order by generated_number) - 1)) ) as date_day from rawdata ) select * from all_periods where date_day <= cast('2025-11-30' as date) order by 1;

-- data: a source's freshness
select max(placed_at) as max_loaded_at, count(*) > 0 as snapshotted from "osl"."entities"."order";

-- data: Cube: a measure by a dimension
SELECT "customer".region "customer__region", count(distinct "order".id) "order__count" FROM entities."order" AS "order" LEFT JOIN entities.customer AS "customer" ON "order".customer_id = "customer".id WHERE ("order".placed_at >= '2025-11-01T00:00:00.000Z'::timestamptz AND "order".placed_at <= '2025-12-31T23:59:59.999Z'::timestamptz) GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10000;

-- data: Cube: a granularity
SELECT date_trunc('month', ("order".placed_at::timestamptz AT TIME ZONE 'UTC')) "order__month", sum("order".amount) "order__total" FROM entities."order" AS "order" GROUP BY 1 ORDER BY 1 ASC LIMIT 10000;

-- data: Cube: a rolling window over a series
SELECT q_0."order__day", "order__rolling" FROM (SELECT "s"."date_from" "order__day", sum("amount") "order__rolling" FROM (SELECT "o".placed_at "at", "o".amount "amount" FROM entities."order" "o") AS base INNER JOIN (SELECT generate_series('2025-11-01'::timestamp, '2025-11-07'::timestamp, '1 day'::interval) "date_from") AS "s" ON base."at" >= "s".date_from - interval '7 day' AND base."at" < "s".date_from + interval '1 day' GROUP BY 1) AS q_0 ORDER BY 1;

-- data: Cube: multiplied measures by keys
SELECT sum("m".amount) "s" FROM (SELECT DISTINCT "order".id "id" FROM entities."order" AS "order" LEFT JOIN entities.payment AS "payment" ON "order".id = "payment".order_id WHERE "payment".method = 'card') AS keys LEFT JOIN entities."order" AS "m" ON keys."id" = "m".id;
