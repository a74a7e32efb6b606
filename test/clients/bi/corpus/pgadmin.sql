-- tool: pgAdmin 4 (written, extended)
-- session: connects
SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8';

-- session: names the session
SET application_name = 'pgAdmin 4 - DB:osl';
SELECT version();

-- introspection: the database it is in
SELECT db.oid as did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding, has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate
FROM pg_catalog.pg_database db WHERE db.datname = current_database();

-- introspection: whether its role may do things
SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser, CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
  CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db
FROM pg_catalog.pg_roles as roles WHERE rolname = current_user;

-- introspection: extensions of replication
SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname='bdr') > 0 THEN 'pgd' WHEN (SELECT COUNT(*) FROM pg_replication_slots) > 0 THEN 'log' ELSE NULL END as type;

-- introspection: whether it is a standby
SELECT pg_is_in_recovery() AS inrecovery, CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END AS isreplaypaused;

-- introspection: schemas
SELECT nsp.oid, nsp.nspname as name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') as can_create, pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') as has_usage, des.description
FROM pg_catalog.pg_namespace nsp LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=nsp.oid AND des.classoid='pg_namespace'::regclass)
WHERE nspname NOT LIKE E'pg\\_%' AND NOT (nsp.nspname = 'information_schema') ORDER BY nspname;

-- introspection: tables of a schema
SELECT rel.oid, rel.relname AS name, (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount,
  (SELECT count(*) FROM pg_catalog.pg_inherits WHERE inhrelid=rel.oid LIMIT 1) as is_inherits, des.description
FROM pg_catalog.pg_class rel LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid=rel.oid AND des.objsubid=0 AND des.classoid='pg_class'::regclass)
WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = <<schema entities>> AND NOT rel.relispartition ORDER BY rel.relname;

-- introspection: columns of a table
SELECT DISTINCT att.attname as name, att.atttypid, att.attnotnull as not_null, att.atthasdef as has_default_val, att.attnum as OID, pg_catalog.format_type(ty.oid,NULL) AS datatype, att.attgenerated,
  CASE WHEN length(coll.collname::text) > 0 AND length(nspc.nspname::text) > 0 THEN pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname),'.',pg_catalog.quote_ident(coll.collname)) ELSE '' END AS collspcname
FROM pg_catalog.pg_attribute att JOIN pg_catalog.pg_type ty ON ty.oid=atttypid LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation=coll.oid LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace=nspc.oid
WHERE att.attrelid = <<class customer>>::oid AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;

-- introspection: constraints of a table
SELECT conindid as oid, conname as name, NOT convalidated as convalidated, desp.description AS comment FROM pg_catalog.pg_constraint ct
LEFT JOIN pg_catalog.pg_description desp ON (desp.objoid=ct.conindid AND desp.objsubid = ct.conindid AND desp.classoid='pg_constraint'::regclass)
WHERE contype='p' AND conrelid = <<class order>>::oid;

-- introspection: statistics of tables
SELECT st.relname AS "Table name", n_tup_ins AS "Tuples inserted", n_live_tup >= 0 AS "Live tuples", last_vacuum AS "Last vacuum" FROM pg_catalog.pg_stat_all_tables st
JOIN pg_catalog.pg_class cl on cl.oid=st.relid WHERE schemaname = 'entities' ORDER BY st.relname;

-- session: the dashboard's sessions
SELECT pid, datname, usename, application_name, client_addr, backend_start, state FROM pg_catalog.pg_stat_activity WHERE pid <> pid;

-- data: view the first hundred rows
SELECT * FROM entities.customer
ORDER BY id ASC LIMIT 100;

-- data: count rows
SELECT COUNT(*) FROM entities."order";

-- session: a plan as JSON
EXPLAIN (FORMAT JSON, ANALYZE OFF, VERBOSE OFF, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF, SETTINGS OFF) SELECT 1;

-- session: the query tool begins and ends
BEGIN;
SELECT 1 AS one;
COMMIT;
