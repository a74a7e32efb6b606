-- tool: Slonik (captured, extended)
-- introspection: 1, SELECT oid, typarray, typname FROM pg_type WHERE typname = ANY($1::tex
-- values: ["{\"int8\",\"date\",\"interval\",\"numeric\",\"timestamp\",\"timestamptz\"}"]
SELECT
          oid,
          typarray,
          typname
        FROM pg_type
        WHERE typname = ANY($1::text[]);

-- data: 2, SELECT id, name FROM customer ORDER BY id
SELECT id, name FROM customer ORDER BY id;

-- session: 3, DISCARD ALL
DISCARD ALL;

-- data: 4, SELECT count(*) FROM "order" WHERE region = $1
-- values: ["eu"]
SELECT count(*) FROM "order" WHERE region = $1;

-- data: 5, SELECT id FROM "order" WHERE id = ANY($1::"int4"[]) ORDER BY id
-- values: ["{\"1\",\"2\",\"3\"}"]
SELECT id FROM "order" WHERE id = ANY($1::"int4"[]) ORDER BY id;

-- data: 6, SELECT a, b FROM unnest($1::"int4"[], $2::"text"[]) AS t(a, b) ORDER B
-- values: ["{\"1\",\"2\"}","{\"x\",\"y\"}"]
SELECT a, b FROM unnest($1::"int4"[], $2::"text"[]) AS t(a, b) ORDER BY a;

-- data: 7, SELECT id FROM "entities"."product" WHERE price > $1 AND label <> $2 O
-- values: ["5","pan"]
SELECT id FROM "entities"."product" WHERE price > $1 AND label <> $2 ORDER BY id;

-- data: 8, SELECT EXISTS(SELECT 1 FROM customer WHERE id = $1)
-- values: ["1"]
SELECT EXISTS(SELECT 1 FROM customer WHERE id = $1);

-- data: 9, SELECT * FROM category ORDER BY id
SELECT * FROM category ORDER BY id;

-- session: 10, COMMIT
START TRANSACTION;
COMMIT;

-- data: 11, SELECT * FROM event WHERE at < to_timestamp($1) ORDER BY id
-- values: ["1767571200"]
SELECT * FROM event WHERE at < to_timestamp($1) ORDER BY id;

-- data: 12, SELECT id FROM event WHERE props @> $1::jsonb ORDER BY id LIMIT 3
-- values: ["{\"ab\":true}"]
SELECT id FROM event WHERE props @> $1::jsonb ORDER BY id LIMIT 3;
