import { encodingName, error } from '../../../wire/index.js';
import { CATALOG_VERSION } from '../catalog/index.js';
import {
  anything,
  bool,
  dateStyle,
  integer,
  oneOf,
  only,
  type SettingKind,
  ValueFault,
} from './setting-kinds.js';
import { NO_EFFECT } from './setting-no-effect.js';

export interface SessionSetting {
  readonly name: string;
  /** Initial value in the setting's own unit. */
  readonly initial: string;
  readonly description: string;
  /** Null for a read-only setting. */
  readonly kind: SettingKind | null;
  /** True if local to the transaction and initialized from `default_…`. */
  readonly ofTransaction?: true;
  /** True if changes are reported to the client as ParameterStatus. */
  readonly reported?: true;
  /** True if allowed in a startup packet. */
  readonly atStart?: true;
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

/** Schemas that do not exist here but are accepted, since Postgres ignores missing schemas in the path. */
const ABSENT_SCHEMAS: ReadonlySet<string> = new Set(['public', '$user']);
const LONGEST_PATH = 1_000;
const SCHEMA_LIST = /^\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*(?:,\s*(?:"(?:[^"]|"")+"|[^\s",]+)\s*)*$/;

/** Accepts lists in which `entities` is the only existing schema; any other would change the meaning of names. */
const searchPath: SettingKind = {
  accept: (text) => {
    const named =
      text.length <= LONGEST_PATH && SCHEMA_LIST.test(text)
        ? (text.match(/"(?:[^"]|"")+"|[^\s",]+/g) ?? []).map((n) =>
            n.startsWith('"') ? n.slice(1, -1).replaceAll('""', '"') : n.toLowerCase(),
          )
        : [];
    if (!named.includes('entities') || named.some((n) => n !== 'entities' && !ABSENT_SCHEMAS.has(n)))
      throw new ValueFault('parameter "search_path" cannot be another than "entities" on this server', {
        hint: 'Available values: entities, beside it "$user" and public.',
      });
    return text;
  },
};

/** Stored under Postgres' name for the encoding; the wire protocol does the conversion. */
const encoding: SettingKind = {
  accept: (text) => {
    const known = encodingName(text);
    if (known === null) throw new ValueFault(null);
    return known;
  },
  text: true,
};

const REPORTED: readonly SessionSetting[] = [
  {
    name: 'application_name',
    initial: '',
    description: 'what the client calls itself',
    kind: { accept: (v) => v.slice(0, NAME_LENGTH), text: true },
    reported: true,
    atStart: true,
  },
  {
    name: 'client_encoding',
    initial: 'UTF8',
    description: 'the encoding of all texts, both ways',
    kind: encoding,
    reported: true,
    atStart: true,
  },
  {
    name: 'DateStyle',
    initial: 'ISO, MDY',
    description: 'how dates are written, and read where they are ambiguous',
    kind: { accept: (v, before) => dateStyle(v, before, 'ISO, MDY'), text: true },
    reported: true,
    atStart: true,
  },
  {
    name: 'IntervalStyle',
    initial: 'postgres',
    description: 'how intervals are written',
    kind: oneOf(...INTERVAL_STYLES),
    reported: true,
    atStart: true,
  },
  {
    name: 'TimeZone',
    initial: 'UTC',
    description: 'the time zone in which moments are written and read',
    kind: anything, // checked by the database, see `withResolvedZones`
    reported: true,
    atStart: true,
  },
  {
    name: 'standard_conforming_strings',
    initial: 'on',
    description: 'backslashes in plain quotes are backslashes',
    kind: only(bool, 'on'),
    reported: true,
  },
];

const TIMEOUTS: readonly SessionSetting[] = [
  {
    name: 'statement_timeout',
    initial: '0',
    description: 'how long a statement may run; 0 leaves it to the server',
    kind: milliseconds,
    atStart: true,
  },
  {
    name: 'lock_timeout',
    initial: '0',
    description: 'how long a statement may wait for a lock; 0 leaves it to the server',
    kind: milliseconds,
    atStart: true,
  },
  {
    name: 'idle_in_transaction_session_timeout',
    initial: '0',
    description: 'how long a session may rest in a transaction before it is ended; 0 is for ever',
    kind: milliseconds,
    atStart: true,
  },
  {
    name: 'idle_session_timeout',
    initial: '0',
    description: 'how long a session may rest outside of a transaction before it is ended; 0 is for ever',
    kind: milliseconds,
    atStart: true,
  },
];

export const PURPOSE = 'osl.purpose';
const LONGEST_PURPOSE = 256;

/** Checks only the form: the policy decides for each query which purposes the caller may use. */
const purpose: SettingKind = {
  accept: (text) => {
    if (text.length > LONGEST_PURPOSE || /[\p{Cc}\p{Cs}]/u.test(text)) throw new ValueFault(null);
    return text;
  },
  text: true,
};

/** READ WRITE is accepted without effect: many clients send it by default, and writes are refused anyway. */
const readOnly: SettingKind = {
  accept: (text, before, name) => {
    bool.accept(text, before, name);
    return 'on';
  },
};

const SESSION: readonly SessionSetting[] = [
  {
    name: PURPOSE,
    initial: '',
    description: 'Sets what the questions of the session are for, among the purposes that policy allows.',
    kind: purpose,
    atStart: true,
  },
  {
    name: 'client_min_messages',
    initial: 'notice',
    description: 'the least important messages that are sent',
    kind: oneOf(...MESSAGE_LEVELS),
    atStart: true,
  },
  {
    name: 'default_transaction_read_only',
    initial: 'on',
    description: 'every transaction only reads; it may be set to off and stays on',
    kind: readOnly,
  },
  {
    name: 'transaction_read_only',
    initial: 'on',
    description: 'this transaction only reads; it may be set to off and stays on',
    kind: readOnly,
  },
  {
    name: 'default_transaction_isolation',
    initial: 'read committed',
    description: 'which state of the data a new transaction sees',
    kind: oneOf(...LEVELS),
  },
  {
    name: 'transaction_isolation',
    initial: 'read committed',
    description: 'which state of the data this transaction sees',
    kind: oneOf(...LEVELS),
    ofTransaction: true,
  },
  {
    name: 'plan_cache_mode',
    initial: 'auto',
    description: 'whether plans are made for the values of each run; auto: but for look-ups by a whole key',
    kind: oneOf('auto', 'force_generic_plan', 'force_custom_plan'),
    atStart: true,
  },
  {
    name: 'extra_float_digits',
    initial: '1',
    description: 'above 0 floats are written exactly; else with as many digits fewer',
    kind: integer({ min: -15, max: 3 }),
    atStart: true,
  },
  {
    name: 'bytea_output',
    initial: 'hex',
    description: 'how bytea is written',
    kind: oneOf('escape', 'hex'),
    atStart: true,
  },
  {
    name: 'search_path',
    initial: 'entities',
    description: 'the schema of names that are given without one',
    kind: searchPath,
    atStart: true,
  },
];

export const CACHE = 'osl.cache';
export const FRESHNESS = 'osl.freshness';

const CACHE_SETTINGS: readonly SessionSetting[] = [
  {
    name: CACHE,
    initial: 'on',
    description: 'whether an answer that was given before will do, where the model says so',
    kind: bool,
    atStart: true,
  },
  { name: FRESHNESS, initial: 'live', description: 'how old the last answer is', kind: null },
];

/** Settings that would change answers in Postgres, so only their current value is accepted. */
const FIXED_VALUE: readonly SessionSetting[] = (
  [
    ['array_nulls', 'on', bool, ['on'], 'NULL in the text of an array is NULL'],
    [
      'backslash_quote',
      'safe_encoding',
      oneOf('safe_encoding', 'on', 'off'),
      ['safe_encoding'],
      String.raw`\' in escape strings`,
    ],
    ['transform_null_equals', 'off', bool, ['off'], '`= NULL` is NULL'],
    ['row_security', 'on', bool, ['on'], 'row filters are in force'],
    ['quote_all_identifiers', 'off', bool, ['off'], 'names are quoted where they must be'],
    ['xmlbinary', 'base64', oneOf('base64', 'hex'), ['base64'], 'how bytea is written in XML'],
    ['xmloption', 'content', oneOf('content', 'document'), ['content'], 'how XML is read'],
    ['lc_monetary', 'C', anything, ['C'], 'how amounts of money are written'],
    ['lc_numeric', 'C', anything, ['C'], 'how numbers are written by to_char'],
    ['lc_time', 'C', anything, ['C'], 'the names of days and months in to_char'],
    ['default_transaction_deferrable', 'off', bool, ['off'], 'no transaction waits for a safe snapshot'],
    ['transaction_deferrable', 'off', bool, ['off'], 'this transaction waits for no safe snapshot'],
  ] as const
).map(([name, initial, kind, values, description]) => {
  return { name, initial, description, kind: only(kind, ...values) };
});

const FIXED: readonly SessionSetting[] = (
  [
    ['server_version', CATALOG_VERSION, 'the version whose catalog is shown', true],
    ['server_version_num', versionNumber(CATALOG_VERSION), 'the same as a number', false],
    ['server_encoding', 'UTF8', 'the encoding of the data', true],
    ['lc_collate', 'C', 'the collation of the catalog', false],
    ['lc_ctype', 'C.UTF-8', 'the classes of characters of the catalog', false],
    ['integer_datetimes', 'on', 'moments are integers', true],
    ['in_hot_standby', 'off', 'this is no standby', true],
    ['is_superuser', 'off', 'the session is no superuser', true],
    ['max_identifier_length', String(NAME_LENGTH), 'bytes of a name', false],
  ] as const
).map(([name, initial, description, reported]) => {
  return { name, initial, description, kind: null, ...(reported ? { reported: true as const } : {}) };
});

const IDENTITY: readonly SessionSetting[] = [
  {
    name: 'session_authorization',
    initial: '',
    description: 'who logged in',
    kind: {
      accept: (text, before) => {
        if (text === before) return before;
        throw error('42501', 'permission denied to set session authorization');
      },
      text: true,
    },
    reported: true,
  },
  {
    name: 'role',
    initial: 'none',
    description: 'there is none but that of who logged in',
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

export const SETTINGS: readonly SessionSetting[] = [
  ...REPORTED,
  ...TIMEOUTS,
  ...SESSION,
  ...FIXED_VALUE,
  ...FIXED,
  ...IDENTITY,
  ...CACHE_SETTINGS,
  ...NO_EFFECT.map(([name, kind, initial]) => {
    return {
      name,
      kind,
      initial,
      description: 'taken for clients that set it; has no effect here',
      atStart: true as const,
    };
  }),
].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
