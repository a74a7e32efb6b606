import { list, type Tool } from './shape.js';

export const THOUGHTSPOT: Tool = {
  tool: 'ThoughtSpot',
  shapes: [
    {
      what: 'three-part names with generated aliases',
      sql: `SELECT "ta_1"."region" "ca_1", SUM("ta_1"."amount") "ca_2" FROM "osl"."entities"."order" "ta_1" GROUP BY "ca_1"`,
    },
    {
      what: "nested REPLACE, concatenation and ESCAPE '!'",
      sql: `SELECT "ta_1"."name" "ca_1" FROM "osl"."entities"."customer" "ta_1"
        WHERE LOWER("ta_1"."name") LIKE REPLACE(REPLACE(REPLACE('a', '!', '!!'), '%', '!%'), '_', '!_') || '%' ESCAPE '!'`,
    },
    {
      what: 'a join of three-part names',
      sql: `SELECT "ta_2"."name" "ca_1", COUNT(DISTINCT "ta_1"."id") "ca_2" FROM "osl"."entities"."order" "ta_1"
        JOIN "osl"."entities"."customer" "ta_2" ON "ta_1"."customer_id" = "ta_2"."id" GROUP BY "ca_1" ORDER BY "ca_2" DESC, "ca_1" LIMIT 5000`,
    },
    {
      what: 'common tables of a chasm trap',
      sql: `WITH "qt_0" AS (SELECT "ta_1"."customer_id" "ca_1", SUM("ta_1"."amount") "ca_2" FROM "osl"."entities"."order" "ta_1" GROUP BY "ca_1"),
        "qt_1" AS (SELECT "ta_2"."id" "ca_3", COUNT(*) "ca_4" FROM "osl"."entities"."customer" "ta_2" GROUP BY "ca_3")
        SELECT "qt_0"."ca_1", "qt_0"."ca_2", "qt_1"."ca_4" FROM "qt_0" LEFT OUTER JOIN "qt_1" ON "qt_0"."ca_1" = "qt_1"."ca_3" ORDER BY 1`,
    },
    {
      what: 'CASE with IS NULL of a total',
      sql: `SELECT CASE WHEN SUM("ta_1"."amount") IS NULL THEN 0 ELSE SUM("ta_1"."amount") END "ca_1" FROM "osl"."entities"."order" "ta_1" WHERE "ta_1"."region" IN ('eu', 'us')`,
    },
    {
      what: 'months by DATE_TRUNC and casts of literals',
      sql: `SELECT CAST(DATE_TRUNC('month', "ta_1"."placed_at") AS DATE) "ca_1", SUM("ta_1"."quantity") "ca_2" FROM "osl"."entities"."order" "ta_1"
        WHERE "ta_1"."placed_at" BETWEEN CAST('2026-01-01 00:00:00' AS TIMESTAMP) AND CAST('2026-12-31 00:00:00' AS TIMESTAMP) GROUP BY "ca_1"`,
    },
    {
      what: 'ranks of totals',
      sql: `SELECT "ta_1"."customer_id", RANK() OVER (ORDER BY SUM("ta_1"."amount") DESC) AS r, SUM(SUM("ta_1"."amount")) OVER () AS total FROM "osl"."entities"."order" "ta_1" GROUP BY 1 ORDER BY 2`,
    },
  ],
};

export const HOLISTICS: Tool = {
  tool: 'Holistics',
  shapes: [
    {
      what: 'TO_CHAR of a truncated time in a zone',
      sql: `SELECT TO_CHAR((CAST((DATE_TRUNC('month', (CAST("T0"."placed_at" AS TIMESTAMPTZ)) AT TIME ZONE 'Etc/UTC')) AT TIME ZONE 'Etc/UTC' AS TIMESTAMPTZ)) AT TIME ZONE 'Etc/UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS "month", COUNT(*) AS "n"
        FROM "entities"."order" "T0" GROUP BY 1 ORDER BY 1 DESC LIMIT 100000`,
    },
    {
      what: 'named common tables with comments',
      sql: `WITH /* explore */ "aql__t1" AS (SELECT "entities_order"."region" AS "region", SUM("entities_order"."amount") AS "sum" FROM "entities"."order" "entities_order" GROUP BY 1)
        SELECT "aql__t1"."region" AS "region", "aql__t1"."sum" AS "sum" FROM "aql__t1" ORDER BY 2 DESC`,
    },
    {
      what: 'percent of total',
      sql: `SELECT "region", SUM("amount") AS s, (SUM("amount") * 1.0) / NULLIF((SUM(SUM("amount")) OVER ()), 0) AS "share" FROM "entities"."order" GROUP BY "region"`,
    },
    {
      what: 'running totals with frames',
      sql: `SELECT "id", SUM("quantity") OVER (PARTITION BY "region" ORDER BY "id" ASC ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS "moving",
        FIRST_VALUE("quantity") OVER (PARTITION BY "region" ORDER BY "id" ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS "first" FROM "entities"."order" ORDER BY "id"`,
    },
  ],
};

export const ANY_TOOL: Tool = {
  tool: 'several tools',
  shapes: [
    { what: 'a ping', sql: 'SELECT 1' },
    { what: 'a ping with a name', sql: "SELECT 'x' AS ping, NULL AS nothing" },
    {
      what: 'an IN list of 1,000 texts',
      sql: `SELECT COUNT(*) FROM entities.customer WHERE region IN (${list(1000, (i) => (i === 7 ? "'eu'" : `'r${i}'`))})`,
    },
    {
      what: 'GREATEST and LEAST over mixed numbers',
      sql: `SELECT GREATEST(quantity, 10), LEAST(amount, 20.5), GREATEST(placed_at, timestamptz '2026-01-01 10:00:00+00') FROM "order"`,
    },
    {
      what: 'set operations',
      sql: `SELECT region FROM customer UNION SELECT region FROM "order" ORDER BY 1`,
    },
    {
      what: 'a semi-join by IN',
      sql: `SELECT name FROM customer WHERE id IN (SELECT customer_id FROM "order" WHERE quantity > 37) ORDER BY name`,
    },
    {
      what: 'a semi-join by EXISTS',
      sql: `SELECT c.name FROM customer c WHERE EXISTS (SELECT 1 FROM "order" o WHERE o.customer_id = c.id AND o.quantity = 40)`,
    },
    {
      what: 'a scalar subquery',
      sql: `SELECT id FROM "order" WHERE amount > (SELECT avg(amount) FROM "order") ORDER BY id`,
    },
    {
      what: 'three tables through a bridge',
      sql: `SELECT p.label, sum(l.pieces) AS n FROM "order" o JOIN line l ON l.order_id = o.id JOIN product p ON p.id = l.product_id GROUP BY p.label ORDER BY 1`,
    },
    {
      what: 'json members',
      sql: `SELECT id, doc ->> 'b' AS b, doc -> 'a' -> 0 AS a0, doc #>> '{a,0}' AS p FROM sample WHERE jsonb_typeof(doc) = 'object'`,
    },
    {
      what: 'array members',
      sql: `SELECT id, numbers[1] AS one, array_length(numbers, 1) AS n, 3 = ANY (numbers) AS has, array_to_string(texts, ',') AS t FROM sample ORDER BY id`,
    },
    {
      what: 'date construction and bins',
      sql: `SELECT make_date(2026, 1, 31) AS d, age(timestamp '2026-03-01', timestamp '2026-01-01') AS a, date_bin('15 minutes', placed_at, timestamptz '2026-01-01 00:00:00+00') AS b FROM "order" ORDER BY id LIMIT 3`,
    },
    {
      what: 'math of calculated fields',
      sql: `SELECT round(sqrt(quantity)::numeric, 4), power(quantity, 2), mod(quantity, 7), quantity % 7, abs(-quantity), sign(amount), ceil(amount), floor(amount), ln(1.0), exp(0.0), trunc(amount, 1) FROM "order" ORDER BY id`,
    },
    {
      what: 'split, pad, reverse and regular expressions',
      sql: `SELECT split_part(email, '@', 2), lpad(name, 5, '.'), reverse(name), regexp_replace(name, '[aeiou]', '*', 'g'), initcap(lower(name)), md5(region), translate(region, 'eu', 'EU') FROM customer`,
    },
    {
      what: 'DISTINCT ON',
      sql: `SELECT DISTINCT ON (region) region, id, amount FROM "order" ORDER BY region, amount DESC`,
    },
    {
      what: 'IS DISTINCT FROM, BETWEEN SYMMETRIC, IS TRUE',
      sql: `SELECT id FROM sample WHERE flag IS NOT TRUE AND small IS DISTINCT FROM 5 AND id BETWEEN SYMMETRIC 3 AND 1`,
    },
    {
      what: 'subtotals by GROUPING SETS',
      sql: `SELECT region, customer_id, sum(amount) AS s, grouping(region, customer_id) AS g FROM "order" GROUP BY GROUPING SETS ((region, customer_id), (region), ()) ORDER BY 1 NULLS LAST, 2 NULLS LAST`,
    },
    {
      what: 'subtotals by ROLLUP',
      sql: `SELECT region, customer_id, count(*) FROM "order" GROUP BY ROLLUP (region, customer_id) ORDER BY 1 NULLS FIRST, 2 NULLS FIRST`,
    },
    {
      what: 'a comma join with its key in WHERE',
      sql: `SELECT c.name, count(*) FROM customer c, "order" o WHERE o.customer_id = c.id AND o.quantity > 3 GROUP BY c.name ORDER BY 1`,
    },
    {
      what: 'a join USING a key',
      sql: `SELECT count(*) FROM (SELECT id AS order_id, region FROM "order") o JOIN line USING (order_id)`,
    },
    {
      what: 'VALUES as a relation',
      sql: `SELECT v.name, v.n FROM (VALUES ('a', 1), ('b', 2)) AS v (name, n) ORDER BY v.n DESC`,
    },
    {
      what: 'a cursor outside a transaction',
      sql: 'DECLARE c CURSOR FOR SELECT 1',
      refused: { sqlstate: '25P01', because: 'Postgres refuses it too' },
    },
  ],
};
