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

export const STARTUP_PARAMETERS: readonly string[] = SETTINGS.filter((s) => s.atStart === true).map(
  (s) => s.name,
);

export interface ShownSetting {
  readonly name: string;
  /** Value in the most readable unit. */
  readonly value: string;
  /** Value in the setting's own unit. */
  readonly stored: string;
  /** Value after RESET, in the setting's own unit; `byDefault` is the server's default in that unit. */
  readonly atStart: string;
  readonly byDefault: string;
  readonly description: string;
}

/**
 * Settings that are passed to the database, each with the values that equal the default of upstream sessions and are
 * therefore not passed.
 */
const OUTPUT: readonly (readonly [name: OutputSetting | PlanSetting, ...ours: string[]])[] = [
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
  readonly #atStart: ReadonlyMap<string, string>;
  #reported: ReadonlyMap<string, string>;
  #freshness: AnswerFreshness | null = null;
  readonly #standbyReads = new SessionReads();
  #receipt: LastReceipt = NO_RECEIPT;
  #output: { readonly of: ReadonlyMap<string, string>; readonly settings: StatementSettings } | null = null;

  /** @throws WireError 22023 for an invalid value */
  constructor(user: string, startup: ReadonlyMap<string, string>) {
    const values = new Map([['session_authorization', user]]);
    for (const [given, value] of startup) {
      const setting = BY_NAME.get(given.toLowerCase());
      if (setting?.atStart === true)
        values.set(given.toLowerCase(), accept(setting, value, setting.initial, setting.name));
    }
    this.#atStart = values;
    this.#scopes = new SettingScopes(values);
    this.#reported = this.reported();
  }

  reported(): ReadonlyMap<string, string> {
    return new Map(SETTINGS.filter((s) => s.reported === true).map((s) => [s.name, this.#shown(s)]));
  }

  /** Returns the settings for data statements that differ from the defaults of upstream sessions. */
  output(): StatementSettings {
    const of = this.#scopes.values;
    if (this.#output?.of !== of) {
      const passed: StatementSettings[number][] = OUTPUT.flatMap(([name, ...ours]) => {
        const { value } = this.show(name);
        return ours.includes(value) ? [] : [[name, value] as const];
      });
      const lock = this.milliseconds('lock_timeout');
      if (lock > 0 && lock < LOCK_TIMEOUT_MS) passed.push(['lock_timeout', String(lock)]);
      this.#output = { of, settings: Object.freeze(passed.map((t) => Object.freeze(t))) };
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
    this.#receipt = { request: null, begun: receipt, text: '' };
    return receipt;
  }

  /** Makes SHOW return the receipt of an answer, unless another answer has begun since. */
  endReceipt(receipt: ReceiptRequest | null): void {
    if (receipt !== null && this.#receipt.begun === receipt)
      this.#receipt = { ...this.#receipt, request: receipt };
  }

  #newReceipt(): ReceiptRequest | null {
    const wanted = this.#valueOf(settingNamed(RECEIPTS));
    if (wanted === 'off') return null;
    const changed = this.output().find(([name]) => FORMATTING.has(name));
    if (changed !== undefined)
      throw error(
        '0A000',
        `a receipt is made of values in their default format, and ${changed[0]} is changed`,
        {
          hint: `RESET ${changed[0]}, or SET ${RECEIPTS} = off`,
        },
      );
    return new ReceiptRequest(wanted === 'multiset' ? 'multiset' : 'sequence');
  }

  /** Waits until SHOW can return the last receipt. @throws QueryError E5030 */
  async awaitReceipt(): Promise<void> {
    const { request } = this.#receipt;
    if (request !== null) this.#receipt = { ...this.#receipt, text: JSON.stringify(await request.issued()) };
  }

  show(name: string): { readonly name: string; readonly value: string } {
    const setting = settingNamed(name);
    return { name: setting.name, value: this.#shown(setting) };
  }

  all(): readonly ShownSetting[] {
    return SETTINGS.map((s) => ({
      name: s.name,
      value: this.#shown(s),
      stored: this.#valueOf(s),
      atStart: this.#atStart.get(s.name.toLowerCase()) ?? s.initial,
      byDefault: s.initial,
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
    const accepted = accept(setting, value, this.#valueOf(setting), name);
    this.#scopes.set(setting.name.toLowerCase(), accepted, local || setting.ofTransaction === true);
  }

  reset(name: string, local = false): void {
    const setting = settingNamed(name);
    if (setting.name === 'session_authorization') return; // nothing to reset: its value cannot change
    if (setting.kind === null) throw unchangeable(setting);
    if (setting.ofTransaction === true) throw error('55P02', `parameter "${setting.name}" cannot be reset`);
    const key = setting.name.toLowerCase();
    this.#scopes.set(key, this.#atStart.get(key) ?? setting.initial, local);
  }

  resetAll(): void {
    this.#receipt = NO_RECEIPT;
    for (const { name, kind, ofTransaction } of SETTINGS)
      if (kind !== null && ofTransaction !== true) this.reset(name);
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
    if (!this.#scopes.takeChanged()) return NOTHING;
    const now = this.reported();
    const changes = [...now].filter(([name, value]) => this.#reported.get(name) !== value);
    this.#reported = now;
    return changes;
  }

  #shown(setting: SessionSetting): string {
    if (setting.name === FRESHNESS) return freshnessText(this.#freshness);
    if (setting.name === RECEIPT) return this.#receipt.text;
    const value = this.#valueOf(setting);
    return setting.kind?.shown?.(value) ?? value;
  }

  #valueOf(setting: SessionSetting): string {
    const key = setting.name.toLowerCase();
    const own = this.#scopes.values.get(key);
    if (own === undefined && setting.ofTransaction === true)
      return this.#scopes.values.get(`default_${key}`) ?? setting.initial;
    return own ?? setting.initial;
  }
}

interface LastReceipt {
  /** Receipt of the last answer; null until the answer is complete. */
  readonly request: ReceiptRequest | null;
  /** Receipt of the answer that began last, complete or not. */
  readonly begun: ReceiptRequest | null;
  /** The receipt as JSON; empty until `awaitReceipt` has set it. */
  readonly text: string;
}

const NO_RECEIPT: LastReceipt = { request: null, begun: null, text: '' };

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

const NOTHING: readonly (readonly [string, string])[] = Object.freeze([]);

function settingNamed(name: string): SessionSetting {
  const setting = BY_NAME.get(name.toLowerCase());
  if (setting === undefined) throw error('42704', `unrecognized configuration parameter "${name}"`);
  return setting;
}

function unchangeable({ name }: SessionSetting): WireError {
  return error('55P02', `parameter "${name}" cannot be changed`);
}

/** Validates a value; `written` is the name as spelled by the client. @throws WireError 22023, 42501, 55P02 */
function accept(setting: SessionSetting, value: string, before: string, written: string): string {
  if (setting.kind === null) throw unchangeable(setting);
  try {
    return setting.kind.accept(value, before, written);
  } catch (fault) {
    if (!(fault instanceof ValueFault)) throw fault;
    const { postgresMessage, detail, hint } = fault;
    const name = setting.kind.text === true ? setting.name : written;
    if (postgresMessage === null) throw invalid(name, value, { detail, hint });
    throw error('22023', postgresMessage, { detail, hint });
  }
}

/** Creates Postgres' error for an invalid value of a setting. */
function invalid(
  name: string,
  value: string,
  more: { readonly detail?: string | undefined; readonly hint?: string | undefined } = {},
): WireError {
  return error('22023', `invalid value for parameter "${name}": "${value}"`, more);
}

type SettingValues = ReadonlyMap<string, string>;

/** Values set for the session, and values that SET LOCAL puts in their place until the transaction ends. */
export interface ScopedValues {
  readonly session: SettingValues;
  readonly local: SettingValues;
}

const NONE: SettingValues = new Map();

/** Values of settings by lower-case name, with commit and rollback. */
export class SettingScopes {
  #state: ScopedValues;
  /** State at the start of the transaction; equal to `#state` outside a transaction. */
  #before: ScopedValues;
  #values: SettingValues;
  #changed = false;

  constructor(session: SettingValues) {
    this.#state = { session, local: NONE };
    this.#before = this.#state;
    this.#values = session;
  }

  get values(): SettingValues {
    return this.#values;
  }

  set(name: string, value: string, local: boolean): void {
    const { session } = this.#state;
    const laid = new Map(this.#state.local);
    if (local) {
      laid.set(name, value);
      this.#become({ session, local: laid });
    } else {
      laid.delete(name);
      this.#become({ session: new Map([...session, [name, value]]), local: laid });
    }
  }

  commit(): void {
    if (this.#state.local.size > 0) this.#become({ session: this.#state.session, local: NONE });
    this.#before = this.#state;
  }

  get state(): ScopedValues {
    return this.#state;
  }

  rollback(to: ScopedValues = this.#before): void {
    this.#become(to);
  }

  /** Returns true if anything has changed since the last call. */
  takeChanged(): boolean {
    const changed = this.#changed;
    this.#changed = false;
    return changed;
  }

  #become(state: ScopedValues): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#values = state.local.size === 0 ? state.session : new Map([...state.session, ...state.local]);
    this.#changed = true;
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
  if (zone === null) throw invalid('TimeZone', text);
  return zone;
}
