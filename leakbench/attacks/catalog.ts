import { attacks, from, SOURCE } from './attack.js';

/** Catalogs, statistics, sizes and plans tell of rows that no query shows. */
export const CATALOG = attacks('catalog', [
  ...from(SOURCE.catalogs, [
    "select relname, reltuples from pg_class where relname in ('customer', 'purchase', 'staff') order by 1",
    "select relname, relpages from pg_class where relname in ('customer', 'purchase') order by 1",
  ]),
  ...from(SOURCE.statistics, [
    "select tablename, attname, n_distinct, most_common_vals from pg_stats where tablename = 'customer' order by 1, 2",
    "select attname, histogram_bounds from pg_stats where tablename = 'purchase' order by 1",
    'select staattnum, stanullfrac, stadistinct from pg_statistic order by 1 limit 20',
  ]),
  ...from(SOURCE.counters, [
    'select relname, n_live_tup, n_tup_ins from pg_stat_user_tables order by 1',
    'select relname, n_live_tup from pg_stat_all_tables where schemaname = $$public$$ order by 1',
    'select relname, heap_blks_read is null from pg_statio_user_tables order by 1',
  ]),
  ...from(SOURCE.sizes, [
    "select pg_relation_size('customer'), pg_total_relation_size('purchase')",
    "select pg_relation_size('public.customer'::regclass)",
    "select pg_table_size('public.staff'), pg_indexes_size('public.customer')",
    'select pg_database_size(current_database()) > 0',
  ]),
  ...from(SOURCE.plans, [
    'explain select * from customer',
    "explain select * from customer where region = 'south'",
    'explain select * from customer where id > 1000',
    'explain (costs off) select * from customer where id > 1000',
    'explain (format json) select * from purchase',
    'explain (analyze, timing off, summary off, buffers off) select * from customer',
    "explain (analyze, timing off, summary off) select * from customer where name like 'Needle%'",
    'explain (verbose) select ssn from customer',
  ]),
  ...from(SOURCE.catalogs, [
    "select count(*) from information_schema.tables where table_name in ('customer', 'staff')",
    "select column_name from information_schema.columns where table_name = 'customer' order by 1",
    'select * from pg_policies order by 1, 2, 3',
    "select pg_get_viewdef('customer'::regclass)",
    'select last_value from pg_sequences order by 1',
    "select indexname, indexdef from pg_indexes where schemaname = 'public' order by 1",
    "select conname, pg_get_constraintdef(oid) from pg_constraint where contype in ('f', 'c') order by 1",
  ]),
  ...from(SOURCE.counters, [
    'select queryid is null, calls from pg_stat_statements order by 2 limit 1',
    'select count(*) from pg_stat_activity where datname = current_database() and query like $$%SECRET%$$',
  ]),
  ...from(SOURCE.statistics, ['select stxname from pg_statistic_ext order by 1']),
  ...from(SOURCE.catalogs, [
    "select attname, atttypid from pg_attribute where attrelid = 'customer'::regclass and attnum > 0 order by attname",
    "select relname from pg_class where relkind in ('r', 'v') and relnamespace not in ('pg_catalog'::regnamespace, 'information_schema'::regnamespace) order by 1",
    "select table_name from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema') order by 1",
    "select column_name, data_type from information_schema.columns where table_schema not in ('pg_catalog', 'information_schema') order by table_name, column_name",
    "select relname, relnatts from pg_class where relname in ('customer', 'complaint') order by 1",
    "select to_regclass('complaint') is null, to_regclass('public.complaint') is null",
    "select typname from pg_type where typname in ('complaint', '_complaint') order by 1",
    'select relname, conname from pg_constraint join pg_class c on c.oid = conrelid order by 1, 2',
  ]),
  ...from(SOURCE.introspection, [
    { language: 'graphql', ask: '{ __schema { types { name } } }' },
    { language: 'graphql', ask: '{ __type(name: "Customer") { fields { name type { name } } } }' },
    { language: 'graphql', ask: '{ __type(name: "CustomersOrderBy") { enumValues { name } } }' },
    { language: 'graphql', ask: '{ __type(name: "CustomerCondition") { inputFields { name } } }' },
    { language: 'graphql', ask: '{ __schema { queryType { fields { name } } } }' },
  ]),
  ...from(SOURCE.agentTools, [
    { language: 'mcp', ask: '{"name": "semantic_schema", "arguments": {}}' },
    { language: 'mcp', ask: '{"name": "semantic_schema", "arguments": {"names": ["customer"]}}' },
    { language: 'mcp', ask: '{"name": "semantic_schema", "arguments": {"names": ["staff", "complaint"]}}' },
    { language: 'mcp', ask: '{"name": "semantic_schema", "arguments": {"parts": ["functions"]}}' },
    { language: 'mcp', ask: '{"name": "semantic_explain", "arguments": {"osql": "select * from customer"}}' },
    {
      language: 'mcp',
      ask: '{"name": "semantic_explain", "arguments": {"osql": "select count(*) from purchase where id > 5000"}}',
    },
  ]),
  ...from(SOURCE.itemApis, [
    { language: 'directus', ask: '/collections' },
    { language: 'directus', ask: '/fields' },
    { language: 'directus', ask: '/fields/customer' },
    { language: 'directus', ask: '/relations' },
    { language: 'directus', ask: '/server/specs/oas' },
    { language: 'directus', ask: '/permissions/me' },
    { language: 'directus', ask: '/users' },
    { language: 'directus', ask: '/roles' },
    { language: 'directus', ask: '/schema/snapshot' },
  ]),
]);
