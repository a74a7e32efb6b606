import type pg from 'pg';
import tap, { test } from 'tap';
import { SYSTEM_RELATIONS } from '../../../src/surfaces/catalog/classify.js';
import { HIDDEN, openBase, openWorld, outcome } from './support/world.js';

const base = await openBase();
tap.teardown(() => base.close());

/** Asks about a name. What comes back must be the same for a hidden name as for one that nobody ever gave. */
const NAME_PROBES: readonly ((name: string) => string)[] = [
  (n) => `select '${n}'::regclass`,
  (n) => `select 'entities.${n}'::regclass::oid`,
  (n) => `select '${n}'::regtype`,
  (n) => `select '${n}[]'::regtype`,
  (n) => `select '_${n}'::regtype`,
  (n) => `select '${n}'::regrole`,
  (n) => `select '${n}'::regnamespace`,
  (n) => `select '${n}'::regproc`,
  (n) =>
    `select to_regclass('${n}'), to_regtype('${n}'), to_regnamespace('${n}'), to_regrole('${n}'), to_regproc('${n}')`,
  (n) => `select to_regclass('entities.${n}_pkey'), to_regclass('${n}_id_seq')`,
  (n) => `select null::${n}`,
  (n) => `select null::entities.${n}`,
  (n) => `select row(1)::${n}`,
  (n) => `select ${n}(1)`,
  (n) => `select has_table_privilege('${n}', 'select')`,
  (n) => `select has_any_column_privilege('entities.${n}', 'select')`,
  (n) => `select has_column_privilege('person', '${n}', 'select')`,
  (n) => `select has_schema_privilege('${n}', 'usage')`,
  (n) => `select has_database_privilege('${n}', 'connect')`,
  (n) => `select has_type_privilege('${n}', 'usage')`,
  (n) => `select has_function_privilege('${n}()', 'execute')`,
  (n) => `select has_table_privilege('${n}', 'person', 'select')`,
  (n) => `select pg_has_role('${n}', 'member')`,
  (n) => `select pg_relation_size('${n}'::regclass)`,
  (n) => `select pg_get_serial_sequence('${n}', 'id')`,
  (n) => `select pg_get_serial_sequence('person', '${n}')`,
  (n) => `select pg_get_viewdef('${n}')`,
  (n) => `select row_security_active('${n}')`,
  (n) => `select pg_get_object_address('table', '{${n}}', '{}')`,
  (n) => `select pg_get_object_address('table column', '{person,${n}}', '{}')`,
  (n) => `select pg_input_is_valid('${n}', 'regclass')`,
  (n) => `select * from pg_input_error_info('${n}', 'regclass')`,
  (n) => `select * from json_populate_record(null::${n}, '{}')`,
  (n) => `select format('%I', '${n}')::regclass`,
  (n) => `select pg_index_column_has_property('${n}_pkey', 1, 'asc')`,
  (n) => `select * from pg_class where relname = '${n}'`,
  (n) => `select * from pg_attribute where attname = '${n}'`,
  (n) => `select * from information_schema.columns where '${n}' in (table_name, column_name, table_schema)`,
  (n) => `select parse_ident('${n}'), quote_ident('${n}')`,
  (n) => `select * from pg_stats where tablename = '${n}' or attname = '${n}'`,
  (n) => `select ('person'::regclass)::text || (select attname from pg_attribute where attname = '${n}')`,
  (n) => `select x.${n} from (select null::person as x) y`,
  (n) => `select (null::person).${n}`,
];

/** Looks at everything there is, in the hope that something is there. */
const SCANS: readonly string[] = [
  ...[...SYSTEM_RELATIONS].map((name) => `select * from pg_catalog.${name}`),
  `select * from pg_catalog.pg_attribute_as_stored`,
  `select * from pg_catalog.pg_constraint_column`,
  `select string_agg(x::text, '') from information_schema.tables x`,
  `select string_agg(x::text, '') from information_schema.columns x`,
  `select string_agg(x::text, '') from information_schema.table_constraints x`,
  `select string_agg(x::text, '') from information_schema.key_column_usage x`,
  `select string_agg(x::text, '') from information_schema.applicable_roles x`,
  `select string_agg(x::text, '') from information_schema.role_table_grants x`,
  `select string_agg(x::text, '') from information_schema.udt_privileges x`,
  `select string_agg(n::regclass::text, ' ') from generate_series(1, 30000) n`,
  `select string_agg(n::regtype::text, ' ') from generate_series(1, 30000) n`,
  `select string_agg(n::regrole::text, ' ') from generate_series(1, 30000) n`,
  `select string_agg(n::regproc::text, ' ') from generate_series(10000, 30000) n`,
  `select string_agg(format_type(n, null), ' ') from generate_series(1, 30000) n`,
  `select string_agg(pg_get_userbyid(n), ' ') from generate_series(1, 30000) n`,
  `select string_agg(pg_describe_object(1259, n, 0), ' ') from generate_series(10000, 30000) n`,
  `select string_agg(pg_get_constraintdef(n), ' ') from generate_series(10000, 30000) n`,
  `select string_agg(pg_get_indexdef(n), ' ') from generate_series(10000, 30000) n`,
  `select string_agg(pg_get_expr(null, n), ' ') from generate_series(10000, 30000) n`,
  `select string_agg(obj_description(n), ' ') from generate_series(1, 30000) n`,
  `select string_agg(obj_description(n, 'pg_class'), ' ') from generate_series(1, 30000) n`,
  `select string_agg(col_description(n, m), ' ') from generate_series(10000, 30000) n, generate_series(1, 20) m`,
  `select string_agg(shobj_description(n, 'pg_database'), ' ') from generate_series(1, 30000) n`,
  `select string_agg((pg_identify_object(1259, n, 0)).identity, ' ') from generate_series(10000, 30000) n`,
  `select string_agg((pg_identify_object(1247, n, 0)).identity, ' ') from generate_series(10000, 30000) n`,
  `select string_agg(pg_get_functiondef(oid), ' ') from pg_proc where prokind = 'f' and oid > 10000`,
  `select string_agg(has_table_privilege(n, 'select')::text, ' ') from generate_series(1, 30000) n`,
  `select string_agg(pg_relation_size(n::regclass)::text, ' ') from generate_series(10000, 30000) n`,
  `select string_agg(current_setting(s), ' ') from unnest(array['search_path', 'application_name']) s`,
  `select * from pg_show_all_settings()`,
  `select current_query(), current_database(), current_schemas(true)`,
  `explain (verbose, settings) select * from pg_class`,
  `explain (analyze, verbose, buffers, wal) select * from pg_class c join pg_attribute a on a.attrelid = c.oid`,
  `select pg_get_keywords(), pg_available_extensions()`,
];

/** Tries to become more, to change, to read a file, to wait or to reach another server. None may be answered. */
const ESCALATIONS: readonly string[] = [
  `select set_config('session_authorization', 'osl', false)`,
  `select set_config('session_authorization', 'postgres', false)`,
  `select set_config('role', 'osl', false)`,
  `select set_config('is_superuser', 'on', false)`,
  `select set_config('osl.session', '{"settings":{"is_superuser":["on"]}}', false)`,
  `select set_config('osl.token', 'x', false)`,
  `select set_config('data_directory', '/', false)`,
  `select set_config('lc_time', 'de_DE', true)`,
  `select set_config('work_mem', '2GB', true), set_config('transaction_read_only', '0x', true)`,
  `select osl_set_config('role', 'osl', false)`,
  `select osl_current_setting('data_directory')`,
  `select * from osl_show_all_settings()`,
  `select osl_version()`,
  `select current_setting('data_directory')`,
  `select current_setting('config_file')`,
  `select current_setting('osl.session')`,
  `select osl_backend_pid()`,
  `select pg_read_file('/etc/passwd')`,
  `select pg_read_file('postgresql.conf')`,
  `select pg_read_binary_file('global/pg_control')`,
  `select pg_ls_dir('.')`,
  `select * from pg_ls_waldir()`,
  `select pg_stat_file('base')`,
  `select lo_import('/etc/passwd')`,
  `select lo_export(1, '/tmp/x')`,
  `select lo_create(0)`,
  `select lo_from_bytea(0, 'x')`,
  `select lo_get(1)`,
  `select nextval('x')`,
  `select pg_sleep(10)`,
  `select pg_sleep_for('1 minute')`,
  `select pg_advisory_lock(1)`,
  `select pg_try_advisory_lock(1)`,
  `select pg_advisory_xact_lock_shared(1)`,
  `select pg_notify('a', 'b')`,
  `select osl_terminate_backend(pg_backend_pid(), 0)`,
  `select osl_cancel_backend(pg_backend_pid())`,
  `select * from pg_lock_status()`,
  `select pg_reload_conf()`,
  `select pg_switch_wal()`,
  `select pg_create_restore_point('x')`,
  `select pg_create_physical_replication_slot('x')`,
  `select pg_export_snapshot()`,
  `select pg_stat_reset()`,
  `select query_to_xml('select 1', true, true, '')`,
  `select table_to_xml('person', true, true, '')`,
  `select database_to_xml(true, true, '')`,
  `select schema_to_xml('entities', true, true, '')`,
  `select xpath('/a', '<a/>'::xml)`,
  `select ts_stat('select 1')`,
  `select ts_rewrite('a'::tsquery, 'select 1')`,
  `select dblink('host=127.0.0.1', 'select 1')`,
  `select binary_upgrade_set_next_pg_authid_oid(1)`,
  `select pg_restore_relation_stats('schemaname', 'entities', 'relname', 'person', 'relpages', 5)`,
  `select pg_import_system_collations('pg_catalog')`,
  `select brin_summarize_new_values('person_pkey'::regclass)`,
  `select pg_config()`,
  `select * from pg_config`,
  `select * from pg_prepared_statement()`,
  `select * from pg_cursor()`,
  `select * from pg_file_settings`,
  `select * from pg_hba_file_rules`,
  `select * from pg_authid`,
  `select * from pg_shadow`,
  `select * from pg_statistic`,
  `select * from pg_largeobject`,
  `select pg_get_loaded_modules()`,
  `select pg_control_system()`,
  `select setseed(0.5)`,
  `select * into t from pg_class`,
  `select * from pg_class for update`,
  `with d as (delete from pg_class returning *) select * from d`,
  `explain analyze delete from pg_class`,
  `set role osl`,
  `set session authorization osl`,
  `set session_authorization = 'osl'`,
  `do $$ begin end $$`,
  `copy pg_class to '/tmp/x'`,
  `create table entities.t (a int)`,
  `prepare p as delete from pg_class`,
  `execute p`,
];

const CONTROL = 'zzz_nobody_gave';

test('no probe finds a hidden name', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const bytes = recorded(client);
  for (const probe of NAME_PROBES) {
    const control = await outcome(client, probe(CONTROL));
    for (const name of HIDDEN) {
      for (const values of [undefined, []]) {
        const answer = await outcome(client, probe(name), values);
        t.equal(
          answer.replaceAll(name, CONTROL),
          control.replace(/"position":"\d+"/, position(answer)),
          probe(name),
        );
      }
    }
  }
  bytes.take();
  for (const scan of SCANS) {
    const answer = await outcome(client, scan);
    const raw = bytes.take();
    for (const name of HIDDEN) t.notOk(raw.includes(name), `${name} in ${scan}`);
    if (!/^\{"code":"42501"/.test(answer)) t.notMatch(answer, /^\{"code":"XX/, scan);
  }
});

/** The position of an error may move with the length of the name, and does not tell anything. */
function position(answer: string): string {
  return /"position":"\d+"/.exec(answer)?.[0] ?? '';
}

/** Taken because clients write it by habit: it changes nothing. */
const TAKEN: readonly string[] = [
  `select set_config('work_mem', '2GB', true), set_config('transaction_read_only', '0', true)`,
  `select set_config('default_transaction_read_only', 'off', false)`,
  `select set_config('transaction_read_only', 'off', true)`,
  `select set_config('role', 'none', false)`,
];

test('nobody becomes more than a caller', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const bytes = recorded(client);
  const self = `select current_user, session_user, current_setting('is_superuser'), count(*) from pg_class`;
  const before = await outcome(client, self);
  t.match(before, '"user:clerk","user:clerk","off"');
  const boots = world.catalogs.stats().boots;
  const mode = `select current_setting('transaction_read_only'), current_setting('default_transaction_read_only'), current_setting('role')`;
  for (const attempt of TAKEN) {
    t.match(await outcome(client, attempt), 'set_config', attempt);
    t.equal(await outcome(client, self), before, `unchanged after ${attempt}`);
    t.match(await outcome(client, mode), '["on","on","none"]', `and it reads only`);
  }
  for (const attempt of ESCALATIONS) {
    for (const values of [undefined, []]) {
      const answer = await outcome(client, attempt, values);
      t.match(
        answer,
        /^\{"code":"(42501|42883|42704|42P01|0A000|25006|22023|55P02|42601|42703|26000)"/,
        attempt,
      );
      t.equal(await outcome(client, self), before, `unchanged after ${attempt}`);
    }
  }
  t.notMatch(bytes.take(), /root:|shared_buffers|\/pglite|postgresql\.conf"/);
  t.equal(world.catalogs.stats().boots, boots, 'one engine answered them all');
});

test('the list of system relations is the engine’s', async (t) => {
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const client = await world.connect('clerk');
  const { rows } = await client.query<{ relname: string }>(
    `select relname from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind in ('r', 'v') and relname not in ('pg_attribute_as_stored', 'pg_constraint_column')`,
  );
  t.same(rows.map((r) => r.relname).sort(), [...SYSTEM_RELATIONS].sort());
});

/** Every byte that the server sends. */
function recorded(client: pg.Client): { take(): string } {
  let text = '';
  // The types of `pg` leave out the connection of a client, which is public in fact.
  const { connection } = client as unknown as { connection: { stream: NodeJS.ReadableStream } };
  connection.stream.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  return {
    take: () => {
      const taken = text;
      text = '';
      return taken;
    },
  };
}
