import type { PlanMode } from './statement.js';

/** Session settings on which the governed plane relies, beyond its timeouts. */
const GOVERNED: readonly (readonly [name: string, value: string])[] = [
  ['default_transaction_read_only', 'on'],
  ['search_path', 'pg_catalog, pg_temp'],
  ['TimeZone', 'UTC'],
  ['DateStyle', 'ISO, MDY'],
  ['IntervalStyle', 'postgres'],
  ['extra_float_digits', '1'],
  ['bytea_output', 'hex'],
  ['client_encoding', 'UTF8'],
  ['standard_conforming_strings', 'on'],
  ...searching({
    // Candidates are compared exactly afterwards, so their own order need not be strict.
    iterative_scan: 'relaxed_order',
    ef_search: '100',
    // The visit budget: a search that has not found enough by then is done again, exactly.
    max_scan_tuples: '40000',
  }),
];

/** Settings of a search in pgvector's HNSW index. A server without the extension takes them as names that mean nothing to it. */
function searching(settings: Readonly<Record<string, string>>): (readonly [string, string])[] {
  return Object.entries(settings).map(([name, value]) => [`hnsw.${name}`, value]);
}

export interface Timeouts {
  readonly statementMs: number;
  readonly lockMs: number;
  readonly idleInTransactionMs: number;
}

/** Statements that put a session into the governed plane's state. */
export function governedSettings(timeouts: Timeouts, planMode: PlanMode = 'force_custom_plan'): string {
  return [
    ...GOVERNED.map(([name, value]) => set(name, value)),
    // Servers that descend from a Postgres before 12 have no such setting.
    `SELECT set_config(name, '${planMode}', false) FROM pg_settings WHERE name = 'plan_cache_mode'`,
    set('statement_timeout', `${timeouts.statementMs}`),
    set('lock_timeout', `${timeouts.lockMs}`),
    set('idle_in_transaction_session_timeout', `${timeouts.idleInTransactionMs}`),
  ].join('; ');
}

function set(name: string, value: string): string {
  // A list-valued setting takes its elements bare: quoted whole, it would be one element.
  return name === 'search_path' ? `SET ${name} TO ${value}` : `SET ${name} TO '${value}'`;
}
