import {
  CATALOG_VERSION,
  FIRST_CALLER,
  MODEL_ROLE,
  OWNER_ROLE,
  SESSION_SIGNALLED,
  SETTING_CHANGED,
  SETTINGS_ROLE,
} from './engine-contract.js';
import { POSTGRES_14_RELATIONS } from './postgres-14-relations.js';

/** Pattern for names of VOLATILE functions that change nothing and reveal nothing about the host. */
const HARMLESS_VOLATILE = `
  '^(pg_(database|indexes|relation|table|tablespace|total_relation)_size|pg_partition_(ancestors|tree|root)'
  '|pg_advisory_unlock.*|random|random_normal|gen_random_uuid|uuidv[47]|clock_timestamp|timeofday'
  '|pg_stat_get_xact_.*|pg_is_in_recovery|pg_sequence_last_value|pg_collation_actual_version'
  '|pg_database_collation_actual_version|pg_cancel_backend|pg_terminate_backend)$'`;

const RESTRICTED_STABLE = `
  '^(pg_config|pg_relation_file.*|pg_filenode_relation|pg_tablespace_databases|pg_prepared_statement|pg_cursor'
  '|pg_listening_channels|pg_stat_get_backend_activity)$'`;

/**
 * Grants EXECUTE on `set_config`, on IMMUTABLE functions, on STABLE functions except `RESTRICTED_STABLE`, and on the
 * VOLATILE functions in `HARMLESS_VOLATILE`. Of the XML functions, only input and output are granted.
 */
function grantHarmlessFunctions(): string {
  return `
  DO $$
  DECLARE f pg_catalog.regprocedure;
  BEGIN
    FOR f IN
      SELECT p.oid FROM pg_catalog.pg_proc p
      WHERE p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
        AND (p.proname !~ '^osl_' OR p.proname IN ('osl_setting', 'osl_sessions', 'osl_cursors', 'osl_statements'))
        AND (p.proname !~ '(xml|xpath)' OR p.proname ~ '^xml_(in|out|recv|send)$')
        AND (p.provolatile = 'i'
          OR p.provolatile = 's' AND p.proname !~ (${RESTRICTED_STABLE})
          OR p.provolatile = 'v' AND p.proname ~ (${HARMLESS_VOLATILE})
          OR p.proname = 'set_config')
    LOOP
      EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', f);
    END LOOP;
  END $$`;
}

/**
 * Settings whose real values may be shown because they reveal nothing about the host. The session's own settings are
 * shown too.
 */
const SAFE_SETTINGS = `ARRAY[
  'array_nulls', 'backslash_quote', 'block_size', 'bytea_output', 'check_function_bodies', 'default_tablespace',
  'default_text_search_config', 'default_transaction_deferrable', 'escape_string_warning', 'lc_messages',
  'lc_monetary', 'lc_numeric', 'lc_time', 'max_function_args', 'max_identifier_length', 'max_index_keys',
  'quote_all_identifiers', 'row_security', 'segment_size', 'standard_conforming_strings', 'temp_tablespaces',
  'timezone_abbreviations', 'transaction_deferrable', 'transform_null_equals', 'wal_block_size', 'xmlbinary',
  'xmloption', 'default_with_oids']`;

/** Settings that `set_config` does not apply to the engine, because they affect more than output formats. */
const NOT_APPLIED_TO_ENGINE = `ARRAY[
  'application_name', 'client_encoding', 'default_transaction_isolation', 'default_transaction_read_only',
  'in_hot_standby', 'is_superuser', 'role', 'search_path', 'server_version',
  'session_authorization', 'transaction_isolation', 'transaction_read_only']`;

/** Settings that take effect within the statement that sets them, as in Postgres. */
const IMMEDIATE_SETTINGS = `ARRAY['bytea_output', 'datestyle', 'extra_float_digits', 'intervalstyle', 'timezone']`;

/**
 * `CREATE OR REPLACE` has no effect on built-in functions, so each is renamed and a new one created in its place. The
 * new functions run as a role that may call only the old ones.
 */
function replacedFunctions(): readonly string[] {
  return [
    `ALTER FUNCTION pg_catalog.version() RENAME TO osl_version;
     CREATE FUNCTION pg_catalog.version() RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
       AS $$ SELECT 'PostgreSQL ${CATALOG_VERSION} (OSL Gateway)' $$`,
    `ALTER FUNCTION pg_catalog.pg_is_wal_replay_paused() RENAME TO osl_is_wal_replay_paused;
     CREATE FUNCTION pg_catalog.pg_is_wal_replay_paused() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT false $$`,
    ...['inet_client_addr', 'inet_client_port', 'inet_server_addr', 'inet_server_port'].map(nullFunction),
    `ALTER FUNCTION pg_catalog.current_setting(text) RENAME TO osl_current_setting;
     ALTER FUNCTION pg_catalog.current_setting(text, boolean) RENAME TO osl_current_setting;
     ALTER FUNCTION pg_catalog.set_config(text, text, boolean) RENAME TO osl_set_config;
     ALTER FUNCTION pg_catalog.pg_show_all_settings() RENAME TO osl_show_all_settings;
     ALTER FUNCTION pg_catalog.pg_backend_pid() RENAME TO osl_backend_pid;
     ALTER FUNCTION pg_catalog.pg_cancel_backend(integer) RENAME TO osl_cancel_backend;
     ALTER FUNCTION pg_catalog.pg_terminate_backend(integer, bigint) RENAME TO osl_terminate_backend`,
    BACKEND_PID,
    CURRENT_SETTING,
    `ALTER FUNCTION pg_catalog.pg_client_encoding() RENAME TO osl_client_encoding;
     CREATE FUNCTION pg_catalog.pg_client_encoding() RETURNS name LANGUAGE sql STABLE PARALLEL SAFE
       AS $$ SELECT pg_catalog.current_setting('client_encoding') $$`,
    SET_CONFIG,
    SHOW_ALL_SETTINGS,
    OWN_SESSIONS,
    CURSORS_AND_STATEMENTS,
    SIGNALS,
    `CREATE OR REPLACE VIEW pg_catalog.pg_settings AS SELECT * FROM pg_catalog.pg_show_all_settings() a`,
    ...OWNED_BY_SETTINGS.map((f) => `ALTER FUNCTION pg_catalog.${f} OWNER TO ${SETTINGS_ROLE}`),
    `GRANT EXECUTE ON FUNCTION pg_catalog.osl_current_setting(text), pg_catalog.osl_current_setting(text, boolean),
       pg_catalog.osl_set_config(text, text, boolean), pg_catalog.osl_show_all_settings() TO ${SETTINGS_ROLE}`,
  ];
}

function nullFunction(name: string): string {
  const type = name.endsWith('addr') ? 'inet' : 'integer';
  return `ALTER FUNCTION pg_catalog.${name}() RENAME TO osl_${name};
    CREATE FUNCTION pg_catalog.${name}() RETURNS ${type} LANGUAGE sql STABLE AS $$ SELECT NULL::${type} $$`;
}

const OWNED_BY_SETTINGS = [
  'osl_setting(text)',
  'set_config(text, text, boolean)',
  'pg_backend_pid()',
  'pg_show_all_settings()',
  'osl_sessions()',
  'osl_cursors()',
  'osl_statements()',
  'pg_cancel_backend(integer)',
  'pg_terminate_backend(integer, bigint)',
];

/**
 * `osl.session` is a JSON object that only the owner and `set_config` can set. It contains `pid`, `settings` by name
 * in lower case (each as `[value, raw value, initial value, default value]`) and, for statements that can read them,
 * the caller's open `sessions` (`SessionActivity`) and this session's `cursors` and `statements`.
 */
const CURRENT_SETTING = `
  CREATE FUNCTION pg_catalog.osl_setting(text) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog AS $$
  DECLARE found text := osl_current_setting('osl.session')::jsonb #>> ARRAY['settings', lower($1), '0'];
  BEGIN
    IF found IS NULL AND lower($1) = ANY (${SAFE_SETTINGS}) THEN
      found := osl_current_setting($1, true);
    END IF;
    RETURN found;
  END $$;
  CREATE FUNCTION pg_catalog.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql STABLE STRICT AS $$
  DECLARE found text := pg_catalog.osl_setting($1);
  BEGIN
    IF found IS NULL AND NOT $2 THEN
      RAISE EXCEPTION USING ERRCODE = '42704',
        MESSAGE = pg_catalog.format('unrecognized configuration parameter "%s"', $1);
    END IF;
    RETURN found;
  END $$;
  CREATE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql STABLE STRICT
    AS $$ SELECT pg_catalog.current_setting($1, false) $$`;

const BACKEND_PID = `
  CREATE FUNCTION pg_catalog.pg_backend_pid() RETURNS integer LANGUAGE plpgsql STABLE STRICT PARALLEL RESTRICTED
    SECURITY DEFINER SET search_path = pg_catalog AS $$
  BEGIN
    RETURN osl_current_setting('osl.session')::jsonb ->> 'pid';
  END $$`;

/**
 * `set_config` sends the change to the gateway in a notice. The gateway applies it like SET after the statement
 * succeeds, or refuses it. Within the statement, the value is formatted as in Postgres and visible to
 * `current_setting`. NULL resets the setting to its value at session start.
 */
const SET_CONFIG = `
  CREATE FUNCTION pg_catalog.set_config(setting_name text, new_value text, is_local boolean) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog AS $$
  DECLARE
    key text := lower($1);
    session jsonb := osl_current_setting('osl.session');
    shown text := coalesce($2, session #>> ARRAY['settings', key, '2']);
    before text;
  BEGIN
    IF $1 IS NULL THEN
      RAISE EXCEPTION USING ERRCODE = '22004', MESSAGE = 'SET requires parameter name';
    ELSIF NOT session -> 'settings' ? key AND key = ANY (${SAFE_SETTINGS}) THEN
      RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = format('permission denied to set parameter "%s"', $1);
    ELSIF NOT session -> 'settings' ? key THEN
      RAISE EXCEPTION USING ERRCODE = '42704', MESSAGE = format('unrecognized configuration parameter "%s"', $1);
    END IF;
    IF key = 'client_encoding' AND pg_char_to_encoding(shown) >= 0 THEN
      shown := pg_encoding_to_char(pg_char_to_encoding(shown));
    END IF;
    IF key <> ALL (${NOT_APPLIED_TO_ENGINE}) AND osl_current_setting(key, true) IS NOT NULL THEN
      BEGIN
        before := osl_current_setting(key);
        shown := osl_set_config(key, shown, true);
        IF key <> ALL (${IMMEDIATE_SETTINGS}) THEN
          PERFORM osl_set_config(key, before, true);
        END IF;
      EXCEPTION WHEN OTHERS THEN
        NULL; -- it is not a value: the gateway says so, in the words of SET
      END;
    END IF;
    PERFORM osl_set_config(
      'osl.session', jsonb_set(session, ARRAY['settings', key, '0'], to_jsonb(shown))::text, true);
    RAISE NOTICE USING ERRCODE = '${SETTING_CHANGED}',
      MESSAGE = json_build_array($1, $2, coalesce($3, false))::text;
    RETURN shown;
  END $$`;

const SHOW_ALL_SETTINGS = `
  CREATE FUNCTION pg_catalog.pg_show_all_settings(OUT name text, OUT setting text, OUT unit text, OUT category text,
    OUT short_desc text, OUT extra_desc text, OUT context text, OUT vartype text, OUT source text, OUT min_val text,
    OUT max_val text, OUT enumvals text[], OUT boot_val text, OUT reset_val text, OUT sourcefile text,
    OUT sourceline integer, OUT pending_restart boolean)
    RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT a.name, coalesce(s.value ->> 1, a.setting), a.unit, a.category, a.short_desc, a.extra_desc, a.context,
         a.vartype,
         CASE WHEN s.value ->> 1 <> s.value ->> 2 THEN 'session'
              WHEN s.value ->> 2 <> s.value ->> 3 THEN 'client' ELSE 'default' END,
         a.min_val, a.max_val, a.enumvals, coalesce(s.value ->> 3, a.boot_val), coalesce(s.value ->> 2, a.reset_val),
         NULL::text, NULL::integer, false
  FROM osl_show_all_settings() a
  LEFT JOIN jsonb_each(osl_current_setting('osl.session')::jsonb -> 'settings') s ON s.key = lower(a.name)
  WHERE s.key IS NOT NULL OR lower(a.name) = ANY (${SAFE_SETTINGS})
  $$`;

/** The caller's own sessions, and views over them. In `pg_locks`, a transaction has only the lock on its virtual id. */
const OWN_SESSIONS = `
  CREATE FUNCTION pg_catalog.osl_sessions(OUT pid integer, OUT application_name text, OUT backend_start timestamptz,
    OUT xact_start timestamptz, OUT query_start timestamptz, OUT state_change timestamptz, OUT state text,
    OUT query text)
    RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT s.pid, s.application_name, to_timestamp(s.backend_start / 1000), to_timestamp(s.xact_start / 1000),
         to_timestamp(s.query_start / 1000), to_timestamp(s.state_change / 1000), s.state, s.query
  FROM jsonb_to_recordset(osl_current_setting('osl.session')::jsonb -> 'sessions') AS s(pid integer,
    application_name text, backend_start float8, xact_start float8, query_start float8, state_change float8,
    state text, query text)
  $$;
  CREATE OR REPLACE VIEW pg_catalog.pg_stat_activity AS
    SELECT d.oid AS datid, d.datname, s.pid, NULL::integer AS leader_pid, u.oid AS usesysid, u.rolname AS usename,
           s.application_name, NULL::inet AS client_addr, NULL::text AS client_hostname, NULL::integer AS client_port,
           s.backend_start, s.xact_start, s.query_start, s.state_change,
           CASE WHEN s.state = 'active' THEN NULL ELSE 'Client' END AS wait_event_type,
           CASE WHEN s.state = 'active' THEN NULL ELSE 'ClientRead' END AS wait_event,
           s.state, NULL::xid AS backend_xid, NULL::xid AS backend_xmin, NULL::bigint AS query_id, s.query,
           'client backend'::text AS backend_type
    FROM pg_catalog.osl_sessions() s
      LEFT JOIN pg_catalog.pg_database d ON d.datname = pg_catalog.current_database()
      LEFT JOIN pg_catalog.pg_roles u ON u.rolname = SESSION_USER;
  CREATE OR REPLACE VIEW pg_catalog.pg_locks AS
    SELECT 'virtualxid'::text AS locktype, NULL::oid AS database, NULL::oid AS relation, NULL::integer AS page,
           NULL::smallint AS tuple, '1/' || s.pid AS virtualxid, NULL::xid AS transactionid, NULL::oid AS classid,
           NULL::oid AS objid, NULL::smallint AS objsubid, '1/' || s.pid AS virtualtransaction, s.pid,
           'ExclusiveLock'::text AS mode, true AS granted, true AS fastpath, NULL::timestamptz AS waitstart
    FROM pg_catalog.osl_sessions() s
    WHERE s.xact_start IS NOT NULL`;

/** Views of the session's cursors and prepared statements, which are kept by the gateway, not by the engine. */
const CURSORS_AND_STATEMENTS = `
  CREATE FUNCTION pg_catalog.osl_cursors(OUT name text, OUT text text, OUT hold boolean, OUT "binary" boolean,
    OUT scroll boolean, OUT created float8)
    RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT c.* FROM jsonb_to_recordset(osl_current_setting('osl.session')::jsonb -> 'cursors') AS c(name text,
    text text, hold boolean, "binary" boolean, scroll boolean, created float8)
  $$;
  CREATE OR REPLACE VIEW pg_catalog.pg_cursors AS
    SELECT c.name, c.text AS statement, c.hold AS is_holdable, c."binary" AS is_binary, c.scroll AS is_scrollable,
           pg_catalog.to_timestamp(c.created / 1000) AS creation_time
    FROM pg_catalog.osl_cursors() c;
  CREATE FUNCTION pg_catalog.osl_statements(OUT name text, OUT text text, OUT prepared float8, OUT parameters jsonb,
    OUT results jsonb, OUT "fromSql" boolean)
    RETURNS SETOF record LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog AS $$
  SELECT s.* FROM jsonb_to_recordset(osl_current_setting('osl.session')::jsonb -> 'statements') AS s(name text,
    text text, prepared float8, parameters jsonb, results jsonb, "fromSql" boolean)
  $$;
  CREATE OR REPLACE VIEW pg_catalog.pg_prepared_statements AS
    SELECT s.name, s.text AS statement, pg_catalog.to_timestamp(s.prepared / 1000) AS prepare_time,
           ARRAY(SELECT t.oid::oid::regtype FROM pg_catalog.jsonb_array_elements_text(s.parameters)
             WITH ORDINALITY t(oid, at) ORDER BY t.at) AS parameter_types,
           CASE WHEN pg_catalog.jsonb_typeof(s.results) = 'array' THEN
             ARRAY(SELECT t.oid::oid::regtype FROM pg_catalog.jsonb_array_elements_text(s.results)
               WITH ORDINALITY t(oid, at) ORDER BY t.at) END AS result_types,
           s."fromSql" AS from_sql, 0::bigint AS generic_plans, 0::bigint AS custom_plans
    FROM pg_catalog.osl_statements() s`;

/** Functions that send a signal to the gateway in a notice. They see only the caller's own sessions. */
const SIGNALS = ['cancel', 'terminate']
  .map(
    (action) => `
  CREATE FUNCTION pg_catalog.pg_${action}_backend(pid integer${action === 'cancel' ? '' : ', timeout bigint DEFAULT 0'})
    RETURNS boolean LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog AS $$
  BEGIN
    IF NOT EXISTS (SELECT FROM osl_sessions() s WHERE s.pid = $1) THEN
      RAISE WARNING 'PID % is not a PostgreSQL server process', $1;
      RETURN false;
    END IF;
    RAISE NOTICE USING ERRCODE = '${SESSION_SIGNALLED}', MESSAGE = json_build_array($1, '${action}')::text;
    RETURN true;
  END $$`,
  )
  .join(';');

/**
 * Restricts the engine to reading, computing and looking up names. Run once on a fresh cluster as the bootstrap
 * superuser; each entry is one script.
 */
export const HARDENING: readonly string[] = [
  // Keep one database and one schema, and remove leftovers of the installation.
  `ALTER DATABASE template0 IS_TEMPLATE false; ALTER DATABASE template1 IS_TEMPLATE false`,
  `DROP DATABASE template0`,
  `DROP DATABASE template1`,
  `COMMENT ON DATABASE postgres IS NULL`,
  `UPDATE pg_catalog.pg_database SET datname = 'osl'`,
  `DROP SCHEMA public`,
  // Roles. A superuser cannot rename itself.
  `CREATE ROLE osl_renamer SUPERUSER; SET SESSION AUTHORIZATION osl_renamer;
   ALTER ROLE postgres RENAME TO ${OWNER_ROLE}; SET SESSION AUTHORIZATION ${OWNER_ROLE};
   DROP ROLE osl_renamer`,
  `CREATE ROLE ${MODEL_ROLE} NOLOGIN; CREATE ROLE ${SETTINGS_ROLE} NOLOGIN;
   CREATE ROLE ${FIRST_CALLER} LOGIN IN ROLE ${MODEL_ROLE}`,
  `CREATE SCHEMA entities; GRANT USAGE ON SCHEMA entities TO PUBLIC`,
  `REVOKE ALL ON DATABASE osl FROM PUBLIC; GRANT CONNECT ON DATABASE osl TO PUBLIC;
   REVOKE USAGE ON LANGUAGE sql, plpgsql FROM PUBLIC`,
  ...POSTGRES_14_RELATIONS,
  // Functions: revoke EXECUTE on all, then grant it on the harmless ones.
  ...replacedFunctions(),
  `REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA pg_catalog FROM PUBLIC`,
  grantHarmlessFunctions(),
  `REVOKE ALL ON pg_catalog.pg_config, pg_catalog.pg_file_settings FROM PUBLIC`,
  `CHECKPOINT`,
];
