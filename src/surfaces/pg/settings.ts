import { error, type WireError } from '../../../wire/index.js';
import {
  type AnswerFreshness,
  asOfText,
  type ResultDelivery,
  type RunningParts,
  timeZoneNamed,
} from '../../ask/index.js';
import { ReceiptRequest } from '../../ask/receipts/receipt-request.js';
import {
  type OutputSetting,
  type PlanSetting,
  SessionReads,
  type StandbyReads,
  type StatementSettings,
} from '../../engine/index.js';
import type { Command } from './command.js';
import { ValueFault } from './setting-kinds.js';
import { CACHE, FRESHNESS, RECEIPT, RECEIPTS, SETTINGS, type SessionSetting } from './setting-list.js';

const BY_NAME: ReadonlyMap<string, SessionSetting> = new Map(SETTINGS.map((s) => [s.name.toLowerCase(), s]));

export const STARTUP_PARAMETERS: readonly string[] = SETTINGS.filter(
  (s) => s.isStartupParameter === true,
).map((s) => s.name);

export interface SettingView {
  readonly name: string;
  /** Value in the most readable unit. */
  readonly value: string;
  /** Value in the setting's own unit. */
  readonly rawValue: string;
  /** Value after RESET, in the setting's own unit; `defaultValue` is the server's default in that unit. */
  readonly initialValue: string;
  readonly defaultValue: string;
  readonly description: string;
}

/**
 * Settings that are passed to the database, each with the values that equal the default of upstream sessions and are
 * therefore not passed.
 */
const PASSED_SETTINGS: readonly (readonly [name: OutputSetting | PlanSetting, ...ours: string[]])[] = [
  ['TimeZone', 'UTC', 'Etc/UTC'],
  ['DateStyle', 'ISO, MDY'],
  ['IntervalStyle', 'postgres'],
  ['extra_float_digits', '1', '2', '3'],
  ['bytea_output', 'hex'],
  ['plan_cache_mode', 'auto'],
];
/** Lock timeout of upstream sessions; only shorter ones are passed on. */
const LOCK_TIMEOUT_MS = 5_000;

export class SessionSettings {
  readonly #scopes: SettingScopes;
  readonly #startupValues: ReadonlyMap<string, string>;
  #reportedValues: ReadonlyMap<string, string>;
  #freshness: AnswerFreshness | null = null;
  readonly #standbyReads = new SessionReads();
  #receipt: LastReceipt = NO_RECEIPT;
  #output: { readonly values: ReadonlyMap<string, string>; readonly settings: StatementSettings } | null =
    null;

  /** @throws WireError 22023 for an invalid value */
  constructor(user: string, startup: ReadonlyMap<string, string>) {
    const values = new Map([['session_authorization', user]]);
    for (const [name, value] of startup) {
      const setting = BY_NAME.get(name.toLowerCase());
      if (setting?.isStartupParameter === true)
        values.set(name.toLowerCase(), acceptValue(setting, value, setting.initial, setting.name));
    }
    this.#startupValues = values;
    this.#scopes = new SettingScopes(values);
    this.#reportedValues = this.reported();
  }

  reported(): ReadonlyMap<string, string> {
    return new Map(SETTINGS.filter((s) => s.isReported === true).map((s) => [s.name, this.#displayValue(s)]));
  }

  /** Returns the settings for data statements that differ from the defaults of upstream sessions. */
  output(): StatementSettings {
    const values = this.#scopes.values;
    if (this.#output?.values !== values) {
      const settings: StatementSettings[number][] = PASSED_SETTINGS.flatMap(([name, ...defaultValues]) => {
        const { value } = this.show(name);
        return defaultValues.includes(value) ? [] : [[name, value] as const];
      });
      const lockTimeout = this.milliseconds('lock_timeout');
      if (lockTimeout > 0 && lockTimeout < LOCK_TIMEOUT_MS)
        settings.push(['lock_timeout', String(lockTimeout)]);
      this.#output = { values, settings: Object.freeze(settings.map((t) => Object.freeze(t))) };
    }
    return this.#output.settings;
  }

  cacheMode(): NonNullable<ResultDelivery['caching']> {
    return this.#valueOf(settingNamed(CACHE)) === 'off' ? 'refresh' : 'reuse';
  }

  /**
   * Returns the session's permission to be answered by a standby; null if the session wants current answers. After a
   * request for a current answer, a standby must contain everything committed before that request.
   */
  standbyReads(): StandbyReads | null {
    if (this.cacheMode() === 'reuse') return this.#standbyReads;
    this.#standbyReads.requireCommitted(performance.now());
    return null;
  }

  /** Sets the value that SHOW returns for `osl.freshness`; null means live. */
  setFreshness(freshness: AnswerFreshness | null): void {
    this.#freshness = freshness;
  }

  get wantsReceipts(): boolean {
    return this.#valueOf(settingNamed(RECEIPTS)) !== 'off';
  }

  /**
   * Registers the start of an answer; until the answer ends, SHOW returns no receipt. Returns the request for the
   * answer's receipt; null if the session wants no receipts.
   *
   * @throws WireError 0A000
   */
  beginReceipt(): ReceiptRequest | null {
    const receipt = this.#newReceipt();
    this.#receipt = { completed: null, latest: receipt, text: '' };
    return receipt;
  }

  /** Makes SHOW return the receipt of an answer, unless another answer has begun since. */
  endReceipt(receipt: ReceiptRequest | null): void {
    if (receipt !== null && this.#receipt.latest === receipt)
      this.#receipt = { ...this.#receipt, completed: receipt };
  }

  #newReceipt(): ReceiptRequest | null {
    const mode = this.#valueOf(settingNamed(RECEIPTS));
    if (mode === 'off') return null;
    const changedSetting = this.output().find(([name]) => FORMATTING.has(name));
    if (changedSetting !== undefined)
      throw error(
        '0A000',
        `a receipt is made of values in their default format, and ${changedSetting[0]} is changed`,
        {
          hint: `RESET ${changedSetting[0]}, or SET ${RECEIPTS} = off`,
        },
      );
    return new ReceiptRequest(mode === 'multiset' ? 'multiset' : 'sequence');
  }

  /** Waits until SHOW can return the last receipt. @throws QueryError E5030 */
  async awaitReceipt(): Promise<void> {
    const { completed } = this.#receipt;
    if (completed !== null)
      this.#receipt = { ...this.#receipt, text: JSON.stringify(await completed.issued()) };
  }

  show(name: string): { readonly name: string; readonly value: string } {
    const setting = settingNamed(name);
    return { name: setting.name, value: this.#displayValue(setting) };
  }

  all(): readonly SettingView[] {
    return SETTINGS.map((s) => ({
      name: s.name,
      value: this.#displayValue(s),
      rawValue: this.#valueOf(s),
      initialValue: this.#startupValues.get(s.name.toLowerCase()) ?? s.initial,
      defaultValue: s.initial,
      description: s.description,
    }));
  }

  /** Returns the value of a duration setting in ms; 0 means no limit. */
  milliseconds(name: string): number {
    return Number(this.#valueOf(settingNamed(name)));
  }

  /** Identifies the current settings: a new object whenever any setting changes. */
  get version(): object {
    return this.#scopes.values;
  }

  /** Sets a value; if `local`, only until the transaction ends. @throws WireError */
  set(name: string, value: string, local: boolean): void {
    const setting = settingNamed(name);
    const accepted = acceptValue(setting, value, this.#valueOf(setting), name);
    this.#scopes.set(setting.name.toLowerCase(), accepted, local || setting.isPerTransaction === true);
  }

  reset(name: string, local = false): void {
    const setting = settingNamed(name);
    if (setting.name === 'session_authorization') return; // nothing to reset: its value cannot change
    if (setting.kind === null) throw unchangeable(setting);
    if (setting.isPerTransaction === true)
      throw error('55P02', `parameter "${setting.name}" cannot be reset`);
    const key = setting.name.toLowerCase();
    this.#scopes.set(key, this.#startupValues.get(key) ?? setting.initial, local);
  }

  resetAll(): void {
    this.#receipt = NO_RECEIPT;
    for (const { name, kind, isPerTransaction } of SETTINGS)
      if (kind !== null && isPerTransaction !== true) this.reset(name);
  }

  get scopes(): SettingScopes {
    return this.#scopes;
  }

  /**
   * Ends a series of messages: commits the settings outside a transaction block, and returns the changes to report as
   * ParameterStatus.
   */
  takeChanges(inBlock: boolean): readonly (readonly [name: string, value: string])[] {
    if (!inBlock) this.#scopes.commit();
    if (!this.#scopes.takeHasChanged()) return NO_CHANGES;
    const current = this.reported();
    const changes = [...current].filter(([name, value]) => this.#reportedValues.get(name) !== value);
    this.#reportedValues = current;
    return changes;
  }

  #displayValue(setting: SessionSetting): string {
    if (setting.name === FRESHNESS) return freshnessText(this.#freshness);
    if (setting.name === RECEIPT) return this.#receipt.text;
    const value = this.#valueOf(setting);
    return setting.kind?.display?.(value) ?? value;
  }

  #valueOf(setting: SessionSetting): string {
    const key = setting.name.toLowerCase();
    const explicitValue = this.#scopes.values.get(key);
    if (explicitValue === undefined && setting.isPerTransaction === true)
      return this.#scopes.values.get(`default_${key}`) ?? setting.initial;
    return explicitValue ?? setting.initial;
  }
}

interface LastReceipt {
  /** Receipt of the last answer; null until the answer is complete. */
  readonly completed: ReceiptRequest | null;
  /** Receipt of the answer that began last, complete or not. */
  readonly latest: ReceiptRequest | null;
  /** The receipt as JSON; empty until `awaitReceipt` has set it. */
  readonly text: string;
}

const NO_RECEIPT: LastReceipt = { completed: null, latest: null, text: '' };

/** Settings that change the text format of values, which receipts require to be the default. */
const FORMATTING: ReadonlySet<string> = new Set([
  'TimeZone',
  'DateStyle',
  'IntervalStyle',
  'extra_float_digits',
  'bytea_output',
]);

function freshnessText(freshness: AnswerFreshness | null): string {
  return freshness === null || freshness.from === 'live'
    ? 'live'
    : `${freshness.from}, as of ${asOfText(freshness)}`;
}

const NO_CHANGES: readonly (readonly [string, string])[] = Object.freeze([]);

function settingNamed(name: string): SessionSetting {
  const setting = BY_NAME.get(name.toLowerCase());
  if (setting === undefined) throw error('42704', `unrecognized configuration parameter "${name}"`);
  return setting;
}

function unchangeable({ name }: SessionSetting): WireError {
  return error('55P02', `parameter "${name}" cannot be changed`);
}

/** Validates a value; `spelledName` is the name as spelled by the client. @throws WireError 22023, 42501, 55P02 */
function acceptValue(setting: SessionSetting, value: string, previous: string, spelledName: string): string {
  if (setting.kind === null) throw unchangeable(setting);
  try {
    return setting.kind.accept(value, previous, spelledName);
  } catch (fault) {
    if (!(fault instanceof ValueFault)) throw fault;
    const { postgresMessage, detail, hint } = fault;
    const name = setting.kind.text === true ? setting.name : spelledName;
    if (postgresMessage === null) throw invalidValue(name, value, { detail, hint });
    throw error('22023', postgresMessage, { detail, hint });
  }
}

/** Creates Postgres' error for an invalid value of a setting. */
function invalidValue(
  name: string,
  value: string,
  fields: { readonly detail?: string | undefined; readonly hint?: string | undefined } = {},
): WireError {
  return error('22023', `invalid value for parameter "${name}": "${value}"`, fields);
}

type SettingValues = ReadonlyMap<string, string>;

/** Values set for the session, and values that SET LOCAL puts in their place until the transaction ends. */
export interface ScopedValues {
  readonly session: SettingValues;
  readonly local: SettingValues;
}

const NO_VALUES: SettingValues = new Map();

/** Values of settings by lower-case name, with commit and rollback. */
export class SettingScopes {
  #state: ScopedValues;
  /** State at the start of the transaction; equal to `#state` outside a transaction. */
  #transactionStart: ScopedValues;
  #values: SettingValues;
  #hasChanged = false;

  constructor(session: SettingValues) {
    this.#state = { session, local: NO_VALUES };
    this.#transactionStart = this.#state;
    this.#values = session;
  }

  get values(): SettingValues {
    return this.#values;
  }

  set(name: string, value: string, local: boolean): void {
    const { session } = this.#state;
    const newLocal = new Map(this.#state.local);
    if (local) {
      newLocal.set(name, value);
      this.#setState({ session, local: newLocal });
    } else {
      newLocal.delete(name);
      this.#setState({ session: new Map([...session, [name, value]]), local: newLocal });
    }
  }

  commit(): void {
    if (this.#state.local.size > 0) this.#setState({ session: this.#state.session, local: NO_VALUES });
    this.#transactionStart = this.#state;
  }

  get state(): ScopedValues {
    return this.#state;
  }

  rollback(to: ScopedValues = this.#transactionStart): void {
    this.#setState(to);
  }

  /** Returns true if anything has changed since the last call. */
  takeHasChanged(): boolean {
    const hasChanged = this.#hasChanged;
    this.#hasChanged = false;
    return hasChanged;
  }

  #setState(state: ScopedValues): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#values = state.local.size === 0 ? state.session : new Map([...state.session, ...state.local]);
    this.#hasChanged = true;
  }
}

const TIME_ZONE = 'timezone';

/** Replaces time zone names in `command` with Postgres' spelling. @throws WireError 22023, QueryError E0510, E0523 */
export async function withResolvedZones(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  command: Command,
): Promise<Command> {
  if (command.kind !== 'set' || !command.assignments.some((a) => isZone(a.name))) return command;
  const assignments = [];
  for (const { name, value } of command.assignments) {
    const zone = value === null || !isZone(name) ? value : await resolveZone(service, value);
    assignments.push({ name, value: zone });
  }
  return { ...command, assignments };
}

/**
 * Replaces the time zone in startup parameters with Postgres' spelling.
 * @throws WireError 22023, QueryError E0510, E0523
 */
export async function withResolvedZone(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  startup: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, string>> {
  const value = startup.get('TimeZone');
  if (value === undefined) return startup;
  return new Map([...startup, ['TimeZone', await resolveZone(service, value)]]);
}

function isZone(name: string): boolean {
  return name.toLowerCase() === TIME_ZONE;
}

/** The most common time zones, recognized without asking a database. */
const KNOWN_ZONES: ReadonlyMap<string, string> = new Map([
  ['utc', 'UTC'],
  ['etc/utc', 'Etc/UTC'],
]);

async function resolveZone(
  service: Pick<RunningParts, 'engines' | 'defaultConnector'>,
  text: string,
): Promise<string> {
  const zone = KNOWN_ZONES.get(text.toLowerCase()) ?? (await timeZoneNamed(service, text));
  if (zone === null) throw invalidValue('TimeZone', text);
  return zone;
}
