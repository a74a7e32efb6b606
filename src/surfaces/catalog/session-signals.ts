/** The SQLSTATE of the notices by which a catalog engine tells which session is to be cancelled or ended. No Postgres uses it. */
export const SESSION_SIGNALLED = 'OSL02';

/** What `pg_cancel_backend` and `pg_terminate_backend` ask for. */
export interface SessionSignal {
  /** As in BackendKeyData. */
  readonly pid: number;
  readonly what: 'cancel' | 'terminate';
}

/** A session of the caller's own as `pg_stat_activity` has it. Times are milliseconds since the epoch. */
export interface CatalogSession {
  readonly pid: number;
  readonly application_name: string;
  readonly backend_start: number;
  readonly xact_start: number | null;
  readonly query_start: number | null;
  readonly state_change: number;
  readonly state: string;
  readonly query: string;
}

/** A cursor of the session as `pg_cursors` has it. */
export interface CatalogCursor {
  readonly name: string;
  readonly text: string;
  readonly hold: boolean;
  readonly binary: boolean;
  readonly scroll: boolean;
  /** ms since the epoch. */
  readonly created: number;
}

/** A prepared statement of the session as `pg_prepared_statements` has it. */
export interface CatalogStatement {
  readonly name: string;
  readonly text: string;
  /** ms since the epoch. */
  readonly prepared: number;
  readonly parameters: readonly number[];
  /** Null for one that gives no rows. */
  readonly results: readonly number[] | null;
  readonly fromSql: boolean;
}

interface SignalNotice {
  readonly sqlstate: string;
  readonly message: string;
}

/** The signal that `notice` tells of, or null for any other notice. */
export function sessionSignal({ sqlstate, message }: SignalNotice): SessionSignal | null {
  if (sqlstate !== SESSION_SIGNALLED) return null;
  const [pid, what] = JSON.parse(message) as [number, SessionSignal['what']]; // made by our own function
  return { pid, what };
}

/** True for a statement that can be about sessions, or what they keep: others need not be told of them. */
export function namesSessions(text: string): boolean {
  return NAMES.test(text);
}

const NAMES =
  /pg_stat_activity|pg_locks|pg_cancel_backend|pg_terminate_backend|pg_cursors|pg_prepared_statements|u&"/i;
