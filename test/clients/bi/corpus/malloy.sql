-- tool: Malloy (captured, extended)
-- session: 1, SET TIME ZONE 'UTC'
SET TIME ZONE 'UTC';

-- introspection: 2, SELECT column_name, c.data_type, e.data_type as element_type FROM info
-- values: ["customer","entities"]
SELECT column_name, c.data_type, e.data_type as element_type
      FROM information_schema.columns c LEFT JOIN information_schema.element_types e
        ON ((c.table_catalog, c.table_schema, c.table_name, 'TABLE', c.dtd_identifier)
          = (e.object_catalog, e.object_schema, e.object_name, e.object_type, e.collection_type_identifier))
        WHERE table_name = $1
          AND table_schema = $2;

-- introspection: 3, SELECT column_name, c.data_type, e.data_type as element_type FROM info
-- values: ["order","entities"]
SELECT column_name, c.data_type, e.data_type as element_type
      FROM information_schema.columns c LEFT JOIN information_schema.element_types e
        ON ((c.table_catalog, c.table_schema, c.table_name, 'TABLE', c.dtd_identifier)
          = (e.object_catalog, e.object_schema, e.object_name, e.object_type, e.collection_type_identifier))
        WHERE table_name = $1
          AND table_schema = $2;

-- data: 4, WITH __stage0 AS ( SELECT base."region" as "region", COUNT(1) as "orde
WITH __stage0 AS (
  SELECT 
     base."region" as "region",
     COUNT(1) as "order_count",
     COALESCE(SUM(base."amount"),0) as "revenue"
  FROM entities.order as base
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 5, WITH __stage0 AS ( SELECT customers_0."name" as "name", COALESCE(SUM(b
WITH __stage0 AS (
  SELECT 
     customers_0."name" as "name",
     COALESCE(SUM(base."amount"),0) as "revenue"
  FROM entities.order as base
   LEFT JOIN entities.customer AS customers_0
    ON customers_0."id"=base."customer_id"
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
  LIMIT 5
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 6, WITH __stage0 AS ( SELECT group_set, base."region" as "region__0", CAS
WITH __stage0 AS (
  SELECT
    group_set,
    base."region" as "region__0",
    CASE WHEN group_set=1 THEN
      base."status"
      END as "status__1",
    CASE WHEN group_set=1 THEN
      COUNT(1)
      END as "order_count__1"
  FROM entities.order as base
  CROSS JOIN GENERATE_SERIES(0,1,1) as group_set
  GROUP BY 1,2,3
)
, __stage1 AS (
  SELECT
    "region__0" as "region",
    COALESCE(TO_JSONB((ARRAY_AGG((SELECT TO_JSONB(__x) FROM (SELECT 
      "status__1" as "status", 
      "order_count__1"::DOUBLE PRECISION as "order_count"
      ) as __x)  ORDER BY  "status__1" ASC NULLS LAST ) FILTER (WHERE group_set=1))),'[]'::JSONB) as "by_status"
  FROM __stage0
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage1 AS finalStage;

-- data: 7, WITH __stage0 AS ( SELECT CASE WHEN (base."quantity"<10) THEN 'small' 
WITH __stage0 AS (
  SELECT 
     CASE WHEN (base."quantity"<10) THEN 'small' ELSE 'big' END as "size",
     COUNT(1) as "order_count"
  FROM entities.order as base
  WHERE (base."status" IN ('paid','new'))
  AND (base."quantity">5)
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 8, WITH __stage0 AS ( SELECT (COUNT(CASE WHEN base."status"='paid' THEN 1
WITH __stage0 AS (
  SELECT 
     (COUNT(CASE WHEN base."status"='paid' THEN 1 END)) as "paid",
     COUNT(1) as "order_count",
     AVG(base."quantity") as "mean"
  FROM entities.order as base
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 9, WITH __stage0 AS ( SELECT base."id" as "id", base."amount" as "amount"
WITH __stage0 AS (
  SELECT 
     base."id" as "id",
     base."amount" as "amount",
     base."placed_at" as "placed_at"
  FROM entities.order as base
  ORDER BY 1 ASC NULLS LAST
  LIMIT 3
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 10, WITH __stage0 AS ( SELECT base."region" as "region", COUNT(1) as "orde
WITH __stage0 AS (
  SELECT 
     base."region" as "region",
     COUNT(1) as "order_count"
  FROM entities.order as base
  GROUP BY 1
)
, __stage1 AS (
  SELECT 
     base."order_count" as "order_count",
     base."region" as "region"
  FROM __stage0 as base
  WHERE base."order_count">5
  ORDER BY 2 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage1 AS finalStage;

-- data: 11, WITH __stage0 AS ( SELECT COUNT(DISTINCT customers_0."id") as "custome
WITH __stage0 AS (
  SELECT 
     COUNT(DISTINCT customers_0."id") as "customer_count",
     count(distinct base."customer_id") as "customers_too"
  FROM entities.order as base
   LEFT JOIN entities.customer AS customers_0
    ON customers_0."id"=base."customer_id"
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 12, WITH __stage0 AS ( SELECT base."region" as "region", COUNT(1) as "orde
WITH __stage0 AS (
  SELECT 
     base."region" as "region",
     COUNT(1) as "order_count",
     RANK() OVER(  ORDER BY  base."region" ASC NULLS LAST ) as "r"
  FROM entities.order as base
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 13, WITH __stage0 AS ( SELECT (EXTRACT(dow FROM base."placed_at")::integer
WITH __stage0 AS (
  SELECT 
     (EXTRACT(dow FROM base."placed_at")::integer+1) as "wk",
     COUNT(1) as "order_count"
  FROM entities.order as base
  GROUP BY 1
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;

-- data: 14, WITH __stage0 AS ( SELECT base."id" as "id" FROM entities.order as bas
WITH __stage0 AS (
  SELECT 
     base."id" as "id"
  FROM entities.order as base
   LEFT JOIN entities.customer AS customers_0
    ON customers_0."id"=base."customer_id"
  WHERE ((CAST(base."placed_at" AS timestamp)>=TIMESTAMP '2025-11-01 00:00:00') and (CAST(base."placed_at" AS timestamp)<((TIMESTAMP '2025-11-01 00:00:00' + make_interval(months=>(2)::integer)))))
  AND (customers_0."name" LIKE 'A%')
  ORDER BY 1 ASC NULLS LAST
)
SELECT row_to_json(finalStage) as row FROM __stage0 AS finalStage;
