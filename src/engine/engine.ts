import type { GovernedPlan } from 'osl-compiler';
import type { TellUpstreamError } from './execution.js';
import type { Ailment } from './health.js';
import type { OutOfService } from './out-of-service.js';
import type { ReachChange } from './reach.js';
import { wordsOf } from './upstream-words.js';

/** One parameter value as the protocol carries it: format 0 is text, 1 binary; null bytes are NULL. */
export interface BoundValue {
  readonly format: 0 | 1;
  readonly bytes: Uint8Array | null;
}

/**
 * Settings that change what a statement's texts mean and how its answer is written, or how long it waits for a lock; and
 * nothing else.
 */
export type OutputSetting = 'TimeZone' | 'DateStyle' | 'IntervalStyle' | 'lock_timeout';

/** The rights of a statement's caller, for policies of the database itself. */
export type RightsSetting = 'osl.rights';

/** Whether a statement's plan may rest on the values of its parameters. */
export type PlanSetting = 'plan_cache_mode';

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
  /** Whose share of the sessions it takes; null for the gateway's own questions. */
  readonly subject: string | null;
  /** None: all text; one: for all columns; otherwise one per column. */
  readonly resultFormats: readonly (0 | 1)[];
  /** Rows to deliver at most; 0 means no cap. */
  readonly maxRows: number;
  /** Bytes of DataRow messages to deliver at most; 0 means no cap. */
  readonly maxBytes: number;
  /** How long it may take from the call to the last row, the sink's own time included; 0 means the engine's backstop only. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
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
}

export interface ExecuteResult {
  /** Rows delivered. */
  readonly rows: number;
  /** Whether a cap held rows back. */
  readonly truncated: boolean;
}

/** The only way for a caller's question to reach a database. */
export interface GovernedDoor {
  /**
   * Runs `plan` read-only with `values` for its slots, in order.
   *
   * Throws QueryError: `execution` (by SQLSTATE only), `databaseDown`, `sourceDenied`, `sourceGone`, `sourceChanged`,
   * `cancelled`, `timedOut`, `overloaded`, `shuttingDown`. Throws InternalError where `plan` was not minted by
   * `govern`. What the sink throws is rethrown.
   */
  execute(
    plan: GovernedPlan,
    values: readonly BoundValue[],
    options: ExecuteOptions,
    sink: RowSink,
  ): Promise<ExecuteResult>;

  /**
   * Reads how the database would run `plan`, whatever the values of its slots: the lines of EXPLAIN without ANALYZE, in
   * text. Throws as `execute` does.
   */
  explain(
    plan: GovernedPlan,
    options: Omit<ExecuteOptions, 'resultFormats' | 'snapshot'>,
    sink: RowSink,
  ): Promise<ExecuteResult>;

  /**
   * A snapshot for the statements of one subject, who must end it; null where the engine keeps none. It holds nothing
   * before its first statement, which fails with `overloaded` where too many are held.
   */
  snapshot(level: IsolationLevel, subject: string | null): TransactionSnapshot | null;
}

/** What `SystemDoor` and its transactions share. */
export interface SystemQueries {
  /**
   * One statement; `$n` are `params`. Values come back as `pg` decodes them: int8 and numeric as strings,
   * timestamps as Date, json parsed, bytea as Buffer. Throws UpstreamFailure.
   */
  query(sql: string, params?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** Any number of statements without parameters. */
  script(ddl: string): Promise<void>;
  /** Loads rows of text-format values with COPY, all or none; returns their number. */
  copyIn(target: CopyTarget, rows: CopyRows): Promise<number>;
}

export interface CopyTarget {
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly string[];
}

export type CopyRows = Iterable<readonly (string | null)[]> | AsyncIterable<readonly (string | null)[]>;

/** Our own statements under other credentials: static text and generated DDL, never a caller's text. */
export interface SystemDoor extends SystemQueries {
  /** The role that governed statements run as. */
  readonly reader: string;
  /** Runs `work` in one transaction: committed when it returns, rolled back when it throws. */
  transaction<T>(work: (tx: SystemQueries) => Promise<T>): Promise<T>;
  /** Lets the governed role read every table that `schema` holds now. */
  grantRead(schema: string): Promise<void>;
}

export interface Engine {
  readonly kind: 'pglite' | 'postgres';
  readonly governed: GovernedDoor;
  /** What the governed door refuses, as it is gone from the database. */
  readonly outOfService: OutOfService;
  readonly system: SystemDoor;
  /** The server's version, as in `18.6`. */
  readonly serverVersion: string;
  /** What an operator should mend, found at start. */
  readonly warnings: readonly string[];
  /**
   * The time zone that `text` names, as the upstream shows it; null where it knows none of that name. Throws
   * QueryError as `execute` does.
   */
  timeZone(text: string): Promise<string | null>;
  /** Why no governed session answers within two seconds; null where one does. */
  ailment(): Promise<Ailment | null>;
  /** Logs in with other credentials from the next session on; those that are open stay. */
  renew(urls: { readonly url: string; readonly systemUrl: string | null }): void;
  close(): Promise<void>;
}

/** The upstream's own words, for the operator alone; what its log may hold of them is in `upstream-words.ts`. */
export interface UpstreamError {
  readonly sqlstate: string;
  readonly message: string;
  readonly detail: string | null;
  readonly hint: string | null;
  readonly routine: string | null;
  readonly schema: string | null;
  readonly table: string | null;
  readonly column: string | null;
  readonly constraint: string | null;
  readonly dataType: string | null;
}

/** What an operator hears of an engine; never a caller. */
export interface EngineEvents {
  /** The upstream's own words about a governed statement. */
  readonly onUpstreamError: TellUpstreamError;
  /** Sessions can no longer be opened, or can again. */
  readonly onReach: (change: ReachChange) => void;
}

/** A connector was given no URL of a role for our own statements. */
export class NoSystemCredentials extends Error {
  constructor() {
    super('this connector has no system credentials');
    this.name = 'NoSystemCredentials';
  }
}

/** A failure of one of our own statements; its words hold no value of a row, as logs and terminals show them. */
export class UpstreamFailure extends Error {
  readonly sqlstate: string;

  constructor(error: UpstreamError) {
    const { message, about } = wordsOf(error);
    super(`${message ?? `the database said ${error.sqlstate}`}${about === null ? '' : ` (${about})`}`);
    this.name = 'UpstreamFailure';
    this.sqlstate = error.sqlstate;
  }
}
