/** Text and parameters of one upstream statement, and the format of its rows. */

/** One parameter value as the protocol carries it: format 0 is text, 1 binary; null bytes are NULL. */
export interface BoundValue {
  readonly format: 0 | 1;
  readonly bytes: Uint8Array | null;
}

/** A value, or one in text format by its text. */
export type SentValue = BoundValue | string;

/**
 * Settings that change what a statement's texts mean and how its answer is written, or how long it waits for a lock; and
 * nothing else.
 */
export type OutputSetting =
  | 'TimeZone'
  | 'DateStyle'
  | 'IntervalStyle'
  | 'extra_float_digits'
  | 'bytea_output'
  | 'lock_timeout';

/** The rights of a statement's caller, for policies of the database itself. */
export type RightsSetting = 'osl.rights';

/** True if a statement's plan may rest on the values of its parameters. */
export type PlanSetting = 'plan_cache_mode';

/** The `plan_cache_mode` of a session. Postgres may plan once for all values under `auto`, and never under the other. */
export type PlanMode = 'auto' | 'force_custom_plan';

/** Settings that differ from a governed session's own, as Postgres shows them. */
export type StatementSettings = readonly (readonly [
  name: OutputSetting | RightsSetting | PlanSetting,
  value: string,
])[];

/** Levels whose statements all see one state of the data. */
export type IsolationLevel = 'REPEATABLE READ' | 'SERIALIZABLE';

/** A transaction of the upstream that several statements run in. */
export interface TransactionSnapshot {
  end(): void;
}

export interface ExecuteOptions {
  /** Subject whose share of the sessions it uses; null for the gateway's own statements. */
  readonly subject: string | null;
  /** None: all text; one: for all columns; otherwise one per column. */
  readonly resultFormats: readonly (0 | 1)[];
  /** Rows to deliver at most; 0 means no cap. */
  readonly maxRows: number;
  /** Bytes of DataRow messages to deliver at most; 0 means no cap. */
  readonly maxBytes: number;
  /** Time from the call to the last row, the sink's own time included; 0 means the engine's backstop only. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
  /** Copies of a large row that its sink makes until it has been written; absent: none. */
  readonly copies?: number;
  /** Hears how long it had a session of the database, in ms, each time that it had one. */
  readonly spent?: (ms: number) => void;
  /** Settings in force for this statement alone; absent or empty: the session's own. */
  readonly settings?: StatementSettings | undefined;
  /** Absent or null: what is committed when the statement begins. */
  readonly snapshot?: TransactionSnapshot | null;
}

export interface RowSink {
  /**
   * `rows` complete DataRow messages, as the upstream sent them. The bytes are a view that stays valid.
   * A promise is backpressure: the upstream is not read until it settles; a rejection ends the execution.
   */
  write(dataRows: Uint8Array, rows: number): void | Promise<void>;
  /** Number of rows that were passed on and cannot be taken back; absent: all. */
  left?(): number;
}

export interface ExecuteResult {
  /** Rows delivered. */
  readonly rows: number;
  /** True if a cap held rows back. */
  readonly truncated: boolean;
}

/** Upstream statement of one governed plan. */
export interface UpstreamStatement {
  readonly sql: string;
  /**
   * `plan`: not its rows but, a line a row, how the database would work them out whatever the values: with none of
   * them, so that no estimate tells of one.
   */
  readonly asks: 'rows' | 'plan';
  /** Of the shared sessions that may run it: `auto` where no value can make another plan the better one. */
  readonly planMode: PlanMode;
  readonly parameterOids: readonly number[];
  /** Column type OIDs that the plan promises. */
  readonly columnOids: readonly number[];
  /** Absent for the gateway's own questions. */
  readonly reads?: StatementReads;
  /** Source of the value of each parameter; absent for the gateway's own statements. */
  readonly sources?: readonly ValueSource[];
}

/** `literal` and `client` are the caller's own. `number` is that of `$n` as the caller wrote it. */
export type ValueSource =
  | { readonly kind: 'literal'; readonly type: string }
  | { readonly kind: 'client'; readonly type: string; readonly number: number }
  | { readonly kind: 'gateway' };

/** Objects that a statement reads, as named to caller and operator. */
export interface StatementReads {
  /** Objects that the question names. */
  readonly objects: readonly string[];
  /** Relations of the model that are scanned. */
  readonly relations: readonly string[];
  /** Their tables, as `schema.table`: for the operator alone. */
  readonly tables: readonly string[];
  /** Names of the output columns, in order. */
  readonly columns: readonly string[];
}
