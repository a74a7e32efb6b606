import { error, type WireError } from '../../wire/index.js';
import type { OutputSetting, StatementSettings } from '../engine/index.js';
import { DateStyleFault, dateStyle } from './date-style.js';
import { SettingScopes } from './setting-scopes.js';

/** What `SHOW` answers and `SET` accepts, for one session. */
interface Setting {
  /** How SHOW and ParameterStatus spell the name. */
  readonly name: string;
  readonly initial: string;
  /** The value as it will be shown, or null where it is not allowed; absent for a setting that cannot change. */
  readonly accept?: (value: string, before: string) => string | null;
  /** It is the transaction's own and begins with the value of `default_…`. */
  readonly ofTransaction?: true;
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
const LEVELS = ['serializable', 'repeatable read', 'read committed', 'read uncommitted'];
const INTERVAL_STYLES = ['postgres', 'postgres_verbose', 'sql_standard', 'iso_8601'];

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
    accept: (v, before) => dateStyle(v, before, 'ISO, MDY'),
    reported: true,
  },
  { name: 'IntervalStyle', initial: 'postgres', accept: oneOf(...INTERVAL_STYLES), reported: true },
  // The upstream knows the zones, and has judged the value: see `time-zone.ts`.
  { name: 'TimeZone', initial: 'UTC', accept: anything, reported: true },
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
  { name: 'default_transaction_isolation', initial: 'read committed', accept: oneOf(...LEVELS) },
  { name: 'transaction_isolation', initial: 'read committed', accept: oneOf(...LEVELS), ofTransaction: true },
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

/** What reaches an upstream, with the value that needs no telling. */
const OUTPUT: readonly (readonly [name: OutputSetting, ...ours: string[]])[] = [
  ['TimeZone', 'UTC', 'Etc/UTC'],
  ['DateStyle', 'ISO, MDY'],
  ['IntervalStyle', 'postgres'],
];
/** A startup packet that asks for one of these and cannot have it is refused, as a Postgres does. */
const REFUSED_AT_START: ReadonlySet<string> = new Set(OUTPUT.map(([name]) => name.toLowerCase()));

/** The settings of one session. */
export class SessionSettings {
  readonly #scopes: SettingScopes;
  readonly #atStart: ReadonlyMap<string, string>;
  #told: ReadonlyMap<string, string>;
  #output: { readonly of: ReadonlyMap<string, string>; readonly settings: StatementSettings } | null = null;

  /**
   * `startup` parameters that are not allowed are left at their defaults, as ParameterStatus then shows.
   *
   * @throws WireError 22023 for a DateStyle or IntervalStyle that is none
   */
  constructor(user: string, startup: ReadonlyMap<string, string>) {
    const values = new Map([['session_authorization', user]]);
    for (const [given, value] of startup) {
      const setting = BY_NAME.get(given.toLowerCase());
      const key = given.toLowerCase();
      const accepted = setting === undefined ? null : acceptedBy(setting, value, setting.initial);
      if (accepted !== null) values.set(key, accepted);
      else if (setting !== undefined && REFUSED_AT_START.has(key)) throw refusal(setting, value);
    }
    this.#atStart = values;
    this.#scopes = new SettingScopes(values);
    this.#told = this.reported();
  }

  /** Everything that ParameterStatus reports. */
  reported(): ReadonlyMap<string, string> {
    return new Map(SETTINGS.filter((s) => s.reported === true).map((s) => [s.name, this.#valueOf(s)]));
  }

  /** What statements for data run under, where it is not what they run under anyway. */
  output(): StatementSettings {
    const of = this.#scopes.values;
    if (this.#output?.of !== of) {
      const settings = OUTPUT.flatMap(([name, ...ours]) => {
        const { value } = this.show(name);
        return ours.includes(value) ? [] : [Object.freeze([name, value] as const)];
      });
      this.#output = { of, settings: Object.freeze(settings) };
    }
    return this.#output.settings;
  }

  /** @throws WireError 42704 */
  show(name: string): { readonly name: string; readonly value: string } {
    const setting = known(name);
    return { name: setting.name, value: this.#valueOf(setting) };
  }

  all(): readonly { readonly name: string; readonly value: string }[] {
    return SETTINGS.map((s) => ({ name: s.name, value: this.#valueOf(s) }));
  }

  /** Sets one value; `local`: until the transaction ends. @throws WireError */
  set(name: string, value: string, local: boolean): void {
    const setting = known(name);
    const accepted = acceptedBy(setting, value, this.#valueOf(setting));
    if (accepted === null) throw refusal(setting, value, name);
    this.#scopes.set(setting.name.toLowerCase(), accepted, local || setting.ofTransaction === true);
  }

  /** Back to the value of the start. @throws WireError 42704, 55P02 */
  reset(name: string, local = false): void {
    const setting = known(name);
    if (setting.name === 'session_authorization') return; // it cannot have been changed
    if (setting.accept === undefined) throw refusal(setting, '');
    if (setting.ofTransaction === true) throw error('55P02', `parameter "${setting.name}" cannot be reset`);
    const key = setting.name.toLowerCase();
    this.#scopes.set(key, this.#atStart.get(key) ?? setting.initial, local);
  }

  resetAll(): void {
    for (const { name, accept, ofTransaction } of SETTINGS)
      if (accept !== undefined && ofTransaction !== true) this.reset(name);
  }

  /** Transactions and savepoints take back, or keep, what was set within them. */
  get scopes(): SettingScopes {
    return this.#scopes;
  }

  /** A series of messages has ended: gives what ParameterStatus must report. */
  settle(inBlock: boolean): readonly (readonly [name: string, value: string])[] {
    if (!inBlock) this.#scopes.commit();
    if (!this.#scopes.takeChanged()) return NOTHING;
    const now = this.reported();
    const changes = [...now].filter(([name, value]) => this.#told.get(name) !== value);
    this.#told = now;
    return changes;
  }

  #valueOf(setting: Setting): string {
    const key = setting.name.toLowerCase();
    const own = this.#scopes.values.get(key);
    if (own === undefined && setting.ofTransaction === true) return this.show(`default_${key}`).value;
    return own ?? setting.initial;
  }
}

const NOTHING: readonly (readonly [string, string])[] = Object.freeze([]);

function known(name: string): Setting {
  const setting = BY_NAME.get(name.toLowerCase());
  if (setting === undefined) throw error('42704', `unrecognized configuration parameter "${name}"`);
  return setting;
}

/** @throws WireError 22023 for a DateStyle that is none */
function acceptedBy(setting: Setting, value: string, before: string): string | null {
  try {
    return setting.accept?.(value, before) ?? null;
  } catch (fault) {
    if (fault instanceof DateStyleFault) throw invalid(setting.name, value, { detail: fault.message });
    throw fault;
  }
}

function refusal(setting: Setting, value: string, written = setting.name): WireError {
  if (setting.accept === undefined) return error('55P02', `parameter "${setting.name}" cannot be changed`);
  if (setting.name.endsWith('read_only')) return error('25006', 'sessions of this server are read-only');
  const hint =
    setting.name === 'IntervalStyle'
      ? { hint: `Available values: ${INTERVAL_STYLES.join(', ')}.` }
      : setting.name.endsWith('_isolation')
        ? { hint: `Available values: ${LEVELS.join(', ')}.` }
        : {};
  return invalid(written, value, hint);
}

/** As Postgres says it. */
export function invalid(
  name: string,
  value: string,
  more: { detail?: string; hint?: string } = {},
): WireError {
  return error('22023', `invalid value for parameter "${name}": "${value}"`, more);
}
