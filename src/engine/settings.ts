import type { FrontendEncoder } from './protocol/encoder.js';
import type { BoundValue, PlanMode, StatementSettings } from './statement.js';
import type { PreparedStatements, PreparedUpstream } from './upstream-session.js';

/** Session settings of the governed engine, apart from timeouts. */
const GOVERNED_SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ['default_transaction_read_only', 'on'],
  ['search_path', 'pg_catalog, pg_temp'],
  ['TimeZone', 'UTC'],
  ['DateStyle', 'ISO, MDY'],
  ['IntervalStyle', 'postgres'],
  ['extra_float_digits', '1'],
  ['bytea_output', 'hex'],
  ['client_encoding', 'UTF8'],
  ['standard_conforming_strings', 'on'],
  ...hnswSettings({
    // Candidates are sorted by exact distance afterwards, so their order need not be strict.
    iterative_scan: 'relaxed_order',
    ef_search: '100',
    // A search that finds too little within this budget is repeated without the index.
    max_scan_tuples: '40000',
  }),
];

/** Settings of pgvector's HNSW search. A server without the extension accepts them as custom settings. */
function hnswSettings(settings: Readonly<Record<string, string>>): (readonly [string, string])[] {
  return Object.entries(settings).map(([name, value]) => [`hnsw.${name}`, value]);
}

export interface Timeouts {
  readonly statementMs: number;
  readonly lockMs: number;
  readonly idleInTransactionMs: number;
}

/** Returns the statements that set up a governed session. */
export function governedSettings(timeouts: Timeouts, planMode: PlanMode = 'force_custom_plan'): string {
  return [
    ...GOVERNED_SETTINGS.map(([name, value]) => set(name, value)),
    // Servers derived from a Postgres before 12 lack this setting.
    `SELECT set_config(name, '${planMode}', false) FROM pg_settings WHERE name = 'plan_cache_mode'`,
    set('statement_timeout', `${timeouts.statementMs}`),
    set('lock_timeout', `${timeouts.lockMs}`),
    set('idle_in_transaction_session_timeout', `${timeouts.idleInTransactionMs}`),
  ].join('; ');
}

function set(name: string, value: string): string {
  // A list-valued setting must not be quoted as a whole: it would become one element.
  return name === 'search_path' ? `SET ${name} TO ${value}` : `SET ${name} TO '${value}'`;
}

/**
 * Method of applying settings to one statement. `function` uses `set_config`. `command` uses SET LOCAL, for embedded
 * servers, whose roles may not call `set_config`; other servers would log a warning each time.
 */
export type SettingForm = 'function' | 'command';

/** Statements sent before the caller's: their number of CommandComplete messages, and the prepared statement. */
export interface SentPreamble {
  readonly completions: number;
  readonly sql: string;
  readonly prepared: PreparedUpstream | null;
}

/**
 * Appends statements that apply `settings` until the next Sync. The caller's statement must be sent before that Sync:
 * together they form one transaction, whose end reverts the settings and whose failure skips the statement.
 */
export function applySettings(
  out: FrontendEncoder,
  prepared: PreparedStatements,
  settings: StatementSettings,
  form: SettingForm,
): SentPreamble {
  if (form === 'command') {
    for (const [name, value] of settings) {
      out.parse('', `SET LOCAL ${name} TO '${value.replaceAll("'", "''")}'`, []);
      out.bind('', [], []);
      out.execute(0);
    }
    return { completions: settings.length, sql: '', prepared: null };
  }
  const calls = settings.map(([name], i) => `pg_catalog.set_config('${name}', $${i + 1}, true)`);
  const sql = `SELECT ${calls.join(', ')}`;
  const oids = settings.map(() => TEXT);
  const statement = prepared.find(sql) ?? prepared.prepare(out, sql, oids);
  out.bind(statement.name, settings.map(boundValue), []);
  out.execute(0);
  return { completions: 1, sql, prepared: statement };
}

const TEXT = 25;

function boundValue([, value]: StatementSettings[number]): BoundValue {
  return { format: 0, bytes: Buffer.from(value, 'utf8') };
}
