-- tool: DBeaver (written, extended)
-- session: connects
SET extra_float_digits = 3;
SET application_name = 'DBeaver 24 - Main <osl>';
SELECT current_schema(),session_user;

-- session: reads and sets the search path
SHOW search_path;
SET search_path = "entities", public;

-- session: the plan of a query
EXPLAIN (FORMAT XML, COSTS OFF) SELECT 1;

-- session: a savepoint around each statement
BEGIN;
SAVEPOINT "PGJDBC_AUTOSAVE";
SELECT 1;
ROLLBACK TO SAVEPOINT "PGJDBC_AUTOSAVE";
COMMIT;

-- session: the session manager
SELECT sa.pid, sa.usename, sa.state FROM pg_catalog.pg_stat_activity sa WHERE false;

-- session: cell edited, then rolled back
-- refused: the gateway never writes
BEGIN;
UPDATE entities.customer SET name = 'x' WHERE id = 1;
ROLLBACK;

-- data: the data tab
SELECT t.* FROM entities.customer t LIMIT 200;

-- data: the data tab, filtered and ordered
SELECT t.* FROM entities."order" t WHERE region = 'eu' AND status LIKE 'p%' ORDER BY t.placed_at DESC LIMIT 200;

-- data: with the place of a row
-- refused: a row's position on disk would reveal hidden rows; DBeaver does without it if the table has a key
SELECT t.*, CTID FROM entities.customer t LIMIT 200;

-- data: row count
SELECT count(*) FROM entities."order" t WHERE quantity > 3;

-- data: the query wrapped for a count
SELECT COUNT(*) FROM ( select * from "order" where status = 'paid' ) dbvrcnt;

-- data: values of a dictionary
SELECT "name","id" FROM entities.customer ORDER BY "name" LIMIT 200;

-- data: grouping panel
SELECT region, status, count(*) AS "count(*)" FROM (select * from entities."order") subquery GROUP BY region, status ORDER BY 3 DESC, 1, 2;
