import type { GovernedPlan } from 'osl-compiler';
import type { ShortStatement } from './short.js';
import type {
  BoundValue,
  ExecuteOptions,
  ExecuteResult,
  IsolationLevel,
  RowSink,
  TransactionSnapshot,
} from './statement.js';

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
   * Throws as `execute` where what `plan` reads is known to have gone from the database: before an answer that was given
   * before is given again. Throws InternalError where `plan` was not minted by `govern`.
   */
  requireInService(plan: GovernedPlan): void;

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
   * The statement of `plan`, for runs while it is short; null where the engine shares no sessions. Throws InternalError
   * where `plan` was not minted by `govern`.
   */
  short(plan: GovernedPlan): ShortStatement | null;

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
