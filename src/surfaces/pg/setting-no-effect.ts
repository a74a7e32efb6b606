import {
  anything,
  bool,
  integer,
  oneOfOrBool,
  only,
  real,
  type SettingKind,
  ValueFault,
} from './setting-kinds.js';

const MAX_INT = 2_147_483_647;
const MAX_REAL = Number.MAX_VALUE;

const flag = (name: string, initial: 'on' | 'off' = 'on'): NoEffect => [name, bool, initial];
const cost = (name: string, initial: string): NoEffect => [name, real({ min: 0, max: MAX_REAL }), initial];
const memory = (name: string, initial: string, min: number): NoEffect => [
  name,
  integer({ unit: 'kB', min, max: MAX_INT }),
  initial,
];
const count = (name: string, initial: string, min: number, max = MAX_INT): NoEffect => [
  name,
  integer({ min, max }),
  initial,
];

type NoEffect = readonly [name: string, kind: SettingKind, initial: string];

/** Messages are always English, so any valid locale name is accepted. */
const locale: SettingKind = {
  text: true,
  accept: (text) => {
    if (!/^$|^[A-Za-z][\w-]*(\.[\w-]+)?(@\w+)?$/.test(text)) throw new ValueFault(null);
    return text;
  },
};

/**
 * Planner, memory and client settings that tools often set by default. They would affect only the speed of a Postgres
 * server, and the databases keep their own. Names, ranges and defaults are those of Postgres 14.
 */
export const NO_EFFECT: readonly NoEffect[] = [
  flag('enable_async_append'),
  flag('enable_bitmapscan'),
  flag('enable_gathermerge'),
  flag('enable_hashagg'),
  flag('enable_hashjoin'),
  flag('enable_incremental_sort'),
  flag('enable_indexonlyscan'),
  flag('enable_indexscan'),
  flag('enable_material'),
  flag('enable_memoize'),
  flag('enable_mergejoin'),
  flag('enable_nestloop'),
  flag('enable_parallel_append'),
  flag('enable_parallel_hash'),
  flag('enable_partition_pruning'),
  flag('enable_partitionwise_aggregate', 'off'),
  flag('enable_partitionwise_join', 'off'),
  flag('enable_seqscan'),
  flag('enable_sort'),
  flag('enable_tidscan'),
  flag('geqo'),
  count('geqo_effort', '5', 1, 10),
  count('geqo_generations', '0', 0),
  count('geqo_pool_size', '0', 0),
  ['geqo_seed', real({ min: 0, max: 1 }), '0'],
  ['geqo_selection_bias', real({ min: 1.5, max: 2 }), '2'],
  count('geqo_threshold', '12', 2),
  cost('cpu_index_tuple_cost', '0.005'),
  cost('cpu_operator_cost', '0.0025'),
  cost('cpu_tuple_cost', '0.01'),
  cost('parallel_setup_cost', '1000'),
  cost('parallel_tuple_cost', '0.1'),
  cost('random_page_cost', '4'),
  cost('seq_page_cost', '1'),
  ['constraint_exclusion', oneOfOrBool('partition', 'on', 'off'), 'partition'],
  ['cursor_tuple_fraction', real({ min: 0, max: 1 }), '0.1'],
  count('default_statistics_target', '100', 1, 10_000),
  ['effective_cache_size', integer({ unit: '8kB', min: 1, max: MAX_INT }), '524288'],
  count('effective_io_concurrency', '1', 0, 1_000),
  ['force_parallel_mode', oneOfOrBool('off', 'on', 'regress'), 'off'],
  count('from_collapse_limit', '8', 1),
  count('join_collapse_limit', '8', 1),
  count('gin_fuzzy_search_limit', '0', 0),
  ['hash_mem_multiplier', real({ min: 1, max: 1_000 }), '1'],
  flag('jit'),
  ['jit_above_cost', real({ min: -1, max: MAX_REAL }), '100000'],
  flag('jit_expressions'),
  ['jit_inline_above_cost', real({ min: -1, max: MAX_REAL }), '500000'],
  ['jit_optimize_above_cost', real({ min: -1, max: MAX_REAL }), '500000'],
  flag('jit_tuple_deforming'),
  memory('logical_decoding_work_mem', '65536', 64),
  memory('maintenance_work_mem', '65536', 1_024),
  memory('work_mem', '4096', 64),
  ['temp_buffers', integer({ unit: '8kB', min: 100, max: 1_073_741_823 }), '1024'],
  count('maintenance_io_concurrency', '10', 0, 1_000),
  count('max_parallel_maintenance_workers', '2', 0, 1_024),
  count('max_parallel_workers', '8', 0, 1_024),
  count('max_parallel_workers_per_gather', '2', 0, 1_024),
  ['min_parallel_index_scan_size', integer({ unit: '8kB', min: 0, max: 715_827_882 }), '64'],
  ['min_parallel_table_scan_size', integer({ unit: '8kB', min: 0, max: 715_827_882 }), '1024'],
  flag('parallel_leader_participation'),
  flag('synchronize_seqscans'),
  ['synchronous_commit', oneOfOrBool('local', 'remote_write', 'remote_apply', 'on', 'off'), 'on'],
  flag('check_function_bodies'),
  flag('escape_string_warning'),
  ['default_table_access_method', only(anything, 'heap'), 'heap'],
  ['default_tablespace', only(anything, '', 'pg_default'), ''],
  ['temp_tablespaces', only(anything, '', 'pg_default'), ''],
  ['lc_messages', locale, 'C'],
];
