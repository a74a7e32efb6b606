-- tool: EF Core (Npgsql) (written, extended)
-- session: a pooled connection is reset
DISCARD ALL;

-- session: a transaction
BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED;
COMMIT;

-- data: Take
-- values: ["5"]
SELECT c.id, c.name, c.region FROM entities.customer AS c ORDER BY c.id LIMIT $1;

-- data: Include
SELECT c.id, c.name, o.id, o.amount FROM entities.customer AS c LEFT JOIN entities."order" AS o ON c.id = o.customer_id ORDER BY c.id, o.id;

-- data: Include with a filter
-- values: ["2"]
SELECT c.id, o1.id, o1.amount FROM entities.customer AS c LEFT JOIN (SELECT o0.id, o0.amount, o0.customer_id FROM (SELECT o.id, o.amount, o.customer_id, ROW_NUMBER() OVER(PARTITION BY o.customer_id ORDER BY o.amount DESC, o.id) AS row FROM entities."order" AS o) AS o0 WHERE o0.row <= $1) AS o1 ON c.id = o1.customer_id ORDER BY c.id, o1.amount DESC, o1.id;

-- data: split query
-- values: ["3"]
SELECT o.id, o.customer_id, c0.id FROM (SELECT c.id FROM entities.customer AS c ORDER BY c.id LIMIT $1) AS c0 INNER JOIN entities."order" AS o ON c0.id = o.customer_id ORDER BY c0.id, o.id;

-- data: Any
SELECT c.id FROM entities.customer AS c WHERE EXISTS (SELECT 1 FROM entities."order" AS o WHERE c.id = o.customer_id AND o.quantity > 30) ORDER BY 1;

-- data: All
SELECT c.id FROM entities.customer AS c WHERE NOT EXISTS (SELECT 1 FROM entities."order" AS o WHERE c.id = o.customer_id AND o.quantity <= 3) ORDER BY 1;

-- data: Contains of an array
-- values: ["{1,2,3}"]
SELECT o.id FROM entities."order" AS o WHERE o.id = ANY ($1::bigint[]) ORDER BY 1;

-- data: GroupBy
SELECT o.region AS "Key", count(*)::int AS "Count", COALESCE(sum(o.amount), 0.0) AS "Sum", avg(o.quantity::double precision) AS "Avg" FROM entities."order" AS o GROUP BY o.region ORDER BY o.region;

-- data: SelectMany by a cross apply
SELECT c.id, o0.id FROM entities.customer AS c JOIN LATERAL (SELECT o.id FROM entities."order" AS o WHERE o.customer_id = c.id ORDER BY o.amount DESC, o.id LIMIT 1) AS o0 ON TRUE ORDER BY c.id;

-- data: FirstOrDefault in a projection
SELECT c.id, (SELECT o.status FROM entities."order" AS o WHERE c.id = o.customer_id ORDER BY o.placed_at DESC LIMIT 1) AS "Last" FROM entities.customer AS c ORDER BY c.id;

-- data: string functions
SELECT c.id FROM entities.customer AS c WHERE c.name LIKE 'A%' OR strpos(c.name, 'i') > 0 OR length(c.name)::int = 2 ORDER BY 1;

-- data: DateTime members
SELECT date_part('year', o.placed_at AT TIME ZONE 'UTC')::int AS y, date_trunc('day', o.placed_at AT TIME ZONE 'UTC') AS d FROM entities."order" AS o ORDER BY o.id LIMIT 4;

-- data: a JSON column
SELECT p.id, p.specs ->> 'origin', CAST(p.specs ->> 'weight' AS integer) FROM entities.product AS p WHERE p.specs #>> '{dims,0}' = '3' ORDER BY 1;

-- data: array column
SELECT e.id, cardinality(e.skills) FROM entities.employee AS e WHERE 'sql' = ANY (e.skills) ORDER BY 1;

-- data: AnyAsync
SELECT EXISTS (SELECT 1 FROM entities."order" AS o WHERE o.status = 'paid');

-- data: CountAsync
SELECT count(*)::int FROM entities."order" AS o WHERE o.note IS NOT NULL AND o.note <> '';

-- data: left join by GroupJoin
SELECT e.name, m.name FROM entities.employee AS e LEFT JOIN entities.employee AS m ON e.manager_id = m.id ORDER BY e.id;

-- data: Union and paging
SELECT u.id FROM (SELECT o.id FROM entities."order" AS o WHERE o.region = 'eu' UNION SELECT p.order_id FROM entities.payment AS p) AS u ORDER BY u.id LIMIT 5 OFFSET 2;

-- data: conditional and null semantics
SELECT o.id FROM entities."order" AS o WHERE o.note <> 'note 3' OR o.note IS NULL ORDER BY o.id LIMIT 5;
