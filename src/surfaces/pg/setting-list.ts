import { error } from '../../../wire/index.js';
import { CATALOG_VERSION } from '../catalog/index.js';
import {
  anyText,
  bool,
  dateStyle,
  encoding,
  integer,
  oneOf,
  oneOfOrBool,
  onlyValues,
  purpose,
  readOnly,
  real,
  type SettingKind,
  searchPath,
  task,
  ValueFault,
} from './setting-kinds.js';

export interface SessionSetting {
  readonly name: string;
  /** Initial value in the setting's own unit. */
  readonly initial: string;
  readonly description: string;
  /** Accepted values; null for a read-only setting. */
  readonly kind: SettingKind | null;
  /** True if the setting is local to the transaction and initialized from the one named `default_…`. */
  readonly isPerTransaction?: true;
  /** True if changes are reported to the client as ParameterStatus. */
  readonly isReported?: true;
  /** True if allowed in a startup packet. */
  readonly isStartupParameter?: true;
}

const LEVELS = ['serializable', 'repeatable read', 'read committed', 'read uncommitted'] as const;
const INTERVAL_STYLES = ['postgres', 'postgres_verbose', 'sql_standard', 'iso_8601'] as const;
export const MESSAGE_LEVELS: readonly string[] = [
  'debug5',
  'debug4',
  'debug3',
  'debug2',
  'debug1',
  'log',
  'notice',
  'warning',
  'error',
];

const MAX_INT = 2_147_483_647;
const NAME_LENGTH = 63;
const milliseconds = integer({ unit: 'ms', min: 0, max: MAX_INT });

const REPORTED: readonly SessionSetting[] = [
  {
    name: 'application_name',
    initial: '',
    description: 'name of the client application',
    kind: { accept: (v) => v.slice(0, NAME_LENGTH), text: true },
    isReported: true,
    isStartupParameter: true,
  },
  {
    name: 'client_encoding',
    initial: 'UTF8',
    description: 'encoding of all text sent and received',
    kind: encoding,
    isReported: true,
    isStartupParameter: true,
  },
  {
    name: 'DateStyle',
    initial: 'ISO, MDY',
    description: 'format of dates in output, and order of day and month in ambiguous input',
    kind: { accept: (v, previous) => dateStyle(v, previous, 'ISO, MDY'), text: true },
    isReported: true,
    isStartupParameter: true,
  },
  {
    name: 'IntervalStyle',
    initial: 'postgres',
    description: 'format of intervals in output',
    kind: oneOf(...INTERVAL_STYLES),
    isReported: true,
    isStartupParameter: true,
  },
  {
    name: 'TimeZone',
    initial: 'UTC',
    description: 'time zone for displaying and interpreting timestamps',
    kind: anyText, // checked by the database, see `withResolvedZones`
    isReported: true,
    isStartupParameter: true,
  },
  {
    name: 'standard_conforming_strings',
    initial: 'on',
    description: 'backslashes in ordinary string literals have no special meaning',
    kind: onlyValues(bool, 'on'),
    isReported: true,
  },
];

const TIMEOUTS: readonly SessionSetting[] = [
  {
    name: 'statement_timeout',
    initial: '0',
    description: 'maximum duration of a statement; 0: only the limit of the server applies',
    kind: milliseconds,
    isStartupParameter: true,
  },
  {
    name: 'lock_timeout',
    initial: '0',
    description: 'maximum time that a statement waits for a lock; 0: only the limit of the server applies',
    kind: milliseconds,
    isStartupParameter: true,
  },
  {
    name: 'idle_in_transaction_session_timeout',
    initial: '0',
    description: 'maximum idle time in a transaction before the session is ended; 0: no limit',
    kind: milliseconds,
    isStartupParameter: true,
  },
  {
    name: 'idle_session_timeout',
    initial: '0',
    description: 'maximum idle time outside a transaction before the session is ended; 0: no limit',
    kind: milliseconds,
    isStartupParameter: true,
  },
];

export const PURPOSE = 'osl.purpose';
export const TASK = 'osl.task';

export const APPROVAL_REASON = 'osl.approval_reason';

const SESSION: readonly SessionSetting[] = [
  {
    name: PURPOSE,
    initial: '',
    description: 'purpose of the queries of this session, one of those that the policy allows',
    kind: purpose,
    isStartupParameter: true,
  },
  {
    name: TASK,
    initial: '',
    description: 'task that the queries of this session are part of, for limits per task',
    kind: task,
    isStartupParameter: true,
  },
  {
    name: APPROVAL_REASON,
    initial: '',
    description: 'reason for which an approval is requested if a query needs one',
    kind: purpose,
  },
  {
    name: 'client_min_messages',
    initial: 'notice',
    description: 'lowest level of messages that are sent',
    kind: oneOf(...MESSAGE_LEVELS),
    isStartupParameter: true,
  },
  {
    name: 'default_transaction_read_only',
    initial: 'on',
    description: 'new transactions are read-only; off is accepted without effect',
    kind: readOnly,
  },
  {
    name: 'transaction_read_only',
    initial: 'on',
    description: 'the current transaction is read-only; off is accepted without effect',
    kind: readOnly,
  },
  {
    name: 'default_transaction_isolation',
    initial: 'read committed',
    description: 'isolation level of new transactions',
    kind: oneOf(...LEVELS),
  },
  {
    name: 'transaction_isolation',
    initial: 'read committed',
    description: 'isolation level of the current transaction',
    kind: oneOf(...LEVELS),
    isPerTransaction: true,
  },
  {
    name: 'plan_cache_mode',
    initial: 'auto',
    description: 'use of generic or custom plans; auto: custom plans, except for look-ups by a whole key',
    kind: oneOf('auto', 'force_generic_plan', 'force_custom_plan'),
    isStartupParameter: true,
  },
  {
    name: 'extra_float_digits',
    initial: '1',
    description: 'digits of floats in output; above 0: exact, otherwise reduced by this number',
    kind: integer({ min: -15, max: 3 }),
    isStartupParameter: true,
  },
  {
    name: 'bytea_output',
    initial: 'hex',
    description: 'output format of bytea',
    kind: oneOf('escape', 'hex'),
    isStartupParameter: true,
  },
  {
    name: 'search_path',
    initial: 'entities',
    description: 'schema of unqualified names',
    kind: searchPath,
    isStartupParameter: true,
  },
];

export const CACHE = 'osl.cache';
export const FRESHNESS = 'osl.freshness';
export const RECEIPTS = 'osl.receipts';
export const RECEIPT = 'osl.receipt';

const CACHE_SETTINGS: readonly SessionSetting[] = [
  {
    name: CACHE,
    initial: 'on',
    description: 'use of cached answers, if the manifest allows it',
    kind: bool,
    isStartupParameter: true,
  },
  {
    name: FRESHNESS,
    initial: 'live',
    description: 'source of the last answer, and its time if not live',
    kind: null,
  },
];

const RECEIPT_SETTINGS: readonly SessionSetting[] = [
  {
    name: RECEIPTS,
    initial: 'off',
    description:
      'whether answers get a receipt; with multiset, one that does not depend on the order of rows',
    kind: oneOf('off', 'on', 'multiset'),
    isStartupParameter: true,
  },
  {
    name: RECEIPT,
    initial: '',
    description: 'receipt of the last answer, in JSON; empty if it has none',
    kind: null,
  },
];

/** Settings that would change answers in Postgres; only the value in effect here is accepted. */
const FIXED_VALUE: readonly SessionSetting[] = (
  [
    ['array_nulls', 'on', bool, ['on'], 'NULL in array input is a null element'],
    [
      'backslash_quote',
      'safe_encoding',
      oneOf('safe_encoding', 'on', 'off'),
      ['safe_encoding'],
      String.raw`\' in escape strings`,
    ],
    ['transform_null_equals', 'off', bool, ['off'], '`= NULL` is not treated as IS NULL'],
    ['row_security', 'on', bool, ['on'], 'row filters are in force'],
    ['quote_all_identifiers', 'off', bool, ['off'], 'identifiers are quoted only where necessary'],
    ['xmlbinary', 'base64', oneOf('base64', 'hex'), ['base64'], 'encoding of bytea in XML'],
    ['xmloption', 'content', oneOf('content', 'document'), ['content'], 'interpretation of XML input'],
    ['lc_monetary', 'C', anyText, ['C'], 'format of monetary amounts'],
    ['lc_numeric', 'C', anyText, ['C'], 'format of numbers in to_char'],
    ['lc_time', 'C', anyText, ['C'], 'names of days and months in to_char'],
    [
      'default_transaction_deferrable',
      'off',
      bool,
      ['off'],
      'new transactions do not wait for a safe snapshot',
    ],
    [
      'transaction_deferrable',
      'off',
      bool,
      ['off'],
      'the current transaction does not wait for a safe snapshot',
    ],
  ] as const
).map(([name, initial, kind, values, description]) => {
  return { name, initial, description, kind: onlyValues(kind, ...values) };
});

const FIXED: readonly SessionSetting[] = (
  [
    ['server_version', CATALOG_VERSION, 'Postgres version whose catalog is shown', true],
    ['server_version_num', versionNumber(CATALOG_VERSION), 'server_version as a number', false],
    ['server_encoding', 'UTF8', 'encoding of the data', true],
    ['lc_collate', 'C', 'collation of the catalog', false],
    ['lc_ctype', 'C.UTF-8', 'character classes of the catalog', false],
    ['integer_datetimes', 'on', 'timestamps are integers', true],
    ['in_hot_standby', 'off', 'the server is not a standby', true],
    ['is_superuser', 'off', 'the session user is not a superuser', true],
    ['max_identifier_length', String(NAME_LENGTH), 'maximum length of a name, in bytes', false],
  ] as const
).map(([name, initial, description, isReported]) => {
  return { name, initial, description, kind: null, ...(isReported ? { isReported: true as const } : {}) };
});

const IDENTITY: readonly SessionSetting[] = [
  {
    name: 'session_authorization',
    initial: '',
    description: 'user who logged in',
    kind: {
      accept: (text, previous) => {
        if (text === previous) return previous;
        throw error('42501', 'permission denied to set session authorization');
      },
      text: true,
    },
    isReported: true,
  },
  {
    name: 'role',
    initial: 'none',
    description: 'current role, always that of the session user',
    kind: {
      accept: (text) => {
        if (text === 'none') return text;
        throw error('42501', `permission denied to set role "${text}"`);
      },
      text: true,
    },
  },
];

/** Converts a version to a number: `14.18` becomes 140018. */
function versionNumber(version: string): string {
  const [major = '', minor = ''] = version.split('.');
  return `${major}${minor.padStart(4, '0')}`;
}

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
 * Planner, memory and client settings that tools often set by default. In Postgres they would affect only speed, and
 * the upstream databases keep their own values. Names, ranges and defaults are those of Postgres 14.
 */
const NO_EFFECT: readonly NoEffect[] = [
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
  ['default_table_access_method', onlyValues(anyText, 'heap'), 'heap'],
  ['default_tablespace', onlyValues(anyText, '', 'pg_default'), ''],
  ['temp_tablespaces', onlyValues(anyText, '', 'pg_default'), ''],
  ['lc_messages', locale, 'C'],
];

export const SETTINGS: readonly SessionSetting[] = [
  ...REPORTED,
  ...TIMEOUTS,
  ...SESSION,
  ...FIXED_VALUE,
  ...FIXED,
  ...IDENTITY,
  ...CACHE_SETTINGS,
  ...RECEIPT_SETTINGS,
  ...NO_EFFECT.map(([name, kind, initial]) => {
    return {
      name,
      kind,
      initial,
      description: 'accepted for clients that set it; has no effect here',
      isStartupParameter: true as const,
    };
  }),
].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
