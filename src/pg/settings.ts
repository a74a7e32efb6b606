import { error, type WireError } from '../../wire/index.js';

/** What `SHOW` answers and `SET` accepts, for one session. Names are lower case; nothing here reaches an upstream. */
interface Setting {
  /** How SHOW and ParameterStatus spell the name. */
  readonly name: string;
  readonly initial: string;
  /** The value as it will be shown, or null where it is not allowed; absent for a setting that cannot change. */
  readonly accept?: (value: string) => string | null;
  /** Whether changes are reported as ParameterStatus. */
  readonly reported?: true;
}

/**
 * The catalog of the wire is that of Postgres 14: the newest version for which every psql asks only for columns
 * that are there.
 */
const SERVER_VERSION = '14.18';

const anything = (value: string): string => value;
const oneOf =
  (...values: readonly string[]) =>
  (value: string): string | null =>
    values.find((v) => v.toLowerCase() === value.toLowerCase()) ?? null;
const UTC = /^(utc|gmt|etc\/utc|etc\/gmt|zulu|[+-]?0|[+-]?00:00|uct)$/i;

const SETTINGS: readonly Setting[] = [
  { name: 'application_name', initial: '', accept: (v) => v.slice(0, 63), reported: true },
  {
    name: 'client_encoding',
    initial: 'UTF8',
    accept: (v) => (/^(utf-?8|unicode)$/i.test(v) ? 'UTF8' : null),
    reported: true,
  },
  {
    name: 'DateStyle',
    initial: 'ISO, MDY',
    accept: (v) => (/^iso(\s*,\s*(mdy|us))?$/i.test(v) ? 'ISO, MDY' : null),
    reported: true,
  },
  { name: 'IntervalStyle', initial: 'postgres', accept: oneOf('postgres'), reported: true },
  { name: 'TimeZone', initial: 'UTC', accept: (v) => (UTC.test(v) ? 'UTC' : null), reported: true },
  {
    name: 'standard_conforming_strings',
    initial: 'on',
    accept: (v) => (truth(v) === 'on' ? 'on' : null),
    reported: true,
  },
  { name: 'extra_float_digits', initial: '1', accept: oneOf('1', '2', '3') },
  { name: 'bytea_output', initial: 'hex', accept: oneOf('hex') },
  { name: 'statement_timeout', initial: '0', accept: anything },
  { name: 'lock_timeout', initial: '0', accept: anything },
  { name: 'idle_in_transaction_session_timeout', initial: '0', accept: anything },
  { name: 'client_min_messages', initial: 'notice', accept: anything },
  { name: 'default_transaction_read_only', initial: 'on', accept: (v) => (truth(v) === 'on' ? 'on' : null) },
  { name: 'transaction_read_only', initial: 'on', accept: (v) => (truth(v) === 'on' ? 'on' : null) },
  { name: 'default_transaction_isolation', initial: 'read committed', accept: anything },
  { name: 'transaction_isolation', initial: 'read committed', accept: anything },
  {
    name: 'search_path',
    initial: 'entities',
    accept: (v) => (/^"?entities"?$/i.test(v.trim()) ? 'entities' : null),
  },
  { name: 'server_version', initial: SERVER_VERSION, reported: true },
  { name: 'server_version_num', initial: '140018' },
  { name: 'server_encoding', initial: 'UTF8', reported: true },
  { name: 'integer_datetimes', initial: 'on', reported: true },
  { name: 'in_hot_standby', initial: 'off', reported: true },
  { name: 'is_superuser', initial: 'off', reported: true },
  { name: 'session_authorization', initial: '', reported: true },
  { name: 'max_identifier_length', initial: '63' },
];

const BY_NAME: ReadonlyMap<string, Setting> = new Map(SETTINGS.map((s) => [s.name.toLowerCase(), s]));

function truth(value: string): 'on' | 'off' | null {
  if (/^(on|true|yes|1)$/i.test(value)) return 'on';
  return /^(off|false|no|0)$/i.test(value) ? 'off' : null;
}

/** The settings of one session. */
export class SessionSettings {
  readonly #values = new Map<string, string>();
  readonly #atStart: ReadonlyMap<string, string>;

  /** `startup` parameters that are not allowed are left at their defaults, as ParameterStatus then shows. */
  constructor(user: string, startup: ReadonlyMap<string, string>) {
    this.#values.set('session_authorization', user);
    for (const [name, value] of startup) {
      const accepted = BY_NAME.get(name.toLowerCase())?.accept?.(value);
      if (accepted !== undefined && accepted !== null) this.#values.set(name.toLowerCase(), accepted);
    }
    this.#atStart = new Map(this.#values);
  }

  /** Everything that ParameterStatus reports. */
  reported(): ReadonlyMap<string, string> {
    return new Map(SETTINGS.filter((s) => s.reported === true).map((s) => [s.name, this.#valueOf(s)]));
  }

  /** @throws WireError 42704 */
  show(name: string): { readonly name: string; readonly value: string } {
    const setting = known(name);
    return { name: setting.name, value: this.#valueOf(setting) };
  }

  all(): readonly { readonly name: string; readonly value: string }[] {
    return SETTINGS.map((s) => ({ name: s.name, value: this.#valueOf(s) }));
  }

  /** Sets one value. Gives what ParameterStatus must report, if anything. @throws WireError */
  set(name: string, value: string): readonly (readonly [string, string])[] {
    const setting = known(name);
    const accepted = setting.accept?.(value) ?? null;
    if (accepted === null) throw refusal(setting, value);
    this.#values.set(setting.name.toLowerCase(), accepted);
    return setting.reported === true ? [[setting.name, accepted]] : [];
  }

  /** Back to the value of the start. */
  reset(name: string): readonly (readonly [string, string])[] {
    const setting = known(name);
    const key = setting.name.toLowerCase();
    const before = this.#valueOf(setting);
    const start = this.#atStart.get(key);
    if (start === undefined) this.#values.delete(key);
    else this.#values.set(key, start);
    const now = this.#valueOf(setting);
    return setting.reported === true && now !== before ? [[setting.name, now]] : [];
  }

  resetAll(): readonly (readonly [string, string])[] {
    return SETTINGS.flatMap((s) => (s.accept === undefined ? [] : this.reset(s.name)));
  }

  #valueOf(setting: Setting): string {
    return this.#values.get(setting.name.toLowerCase()) ?? setting.initial;
  }
}

function known(name: string): Setting {
  const setting = BY_NAME.get(name.toLowerCase());
  if (setting === undefined) throw error('42704', `unrecognized configuration parameter "${name}"`);
  return setting;
}

function refusal(setting: Setting, value: string): WireError {
  if (setting.accept === undefined) return error('55P02', `parameter "${setting.name}" cannot be changed`);
  if (setting.name === 'TimeZone') {
    return error('22023', `time zone "${value}" is not served: results are in UTC`, {
      hint: 'convert with AT TIME ZONE',
    });
  }
  if (setting.name.endsWith('read_only')) return error('25006', 'sessions of this server are read-only');
  return error('22023', `invalid value for parameter "${setting.name}": "${value}"`);
}
