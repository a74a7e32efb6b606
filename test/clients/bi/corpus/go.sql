-- tool: lib/pq and pgx (written, extended)
-- session: lib/pq opens a transaction of database/sql
BEGIN;
SET TRANSACTION READ WRITE;
SELECT 1;
COMMIT;

-- session: lib/pq opens one with options
BEGIN;
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SET TRANSACTION READ ONLY;
COMMIT;

-- session: pgx opens a transaction with all its options
begin isolation level repeatable read read only deferrable;
rollback;

-- session: pgx marks a nested transaction
begin;
savepoint sp_1;
rollback to savepoint sp_1;
release savepoint sp_1;
commit;

-- session: both ping
-- ping;

-- introspection: pgx looks for a type
-- values: ["customer"]
select 'customer'::regtype::oid > 0, typname, typtype from pg_type where typname = $1 order by 1 limit 1;

-- introspection: sqlc and migrate look for a table
SELECT COUNT(1) FROM information_schema.tables WHERE table_schema = (SELECT current_schema()) AND table_name = 'schema_migrations' LIMIT 1;

-- data: a row by its key
-- values: ["3"]
SELECT id, name, region FROM customer WHERE id = $1;

-- data: named columns into a struct
-- values: ["paid", "10"]
SELECT id, customer_id, amount::text, placed_at FROM "order" WHERE status = $1 ORDER BY placed_at DESC LIMIT $2;

-- data: an array parameter
-- values: ["{1,2,3}"]
SELECT id, status FROM "order" WHERE id = ANY($1::bigint[]) ORDER BY id;

-- data: an optional filter
-- values: [null]
SELECT count(*) FROM "order" WHERE ($1::text IS NULL OR status = $1);
