import { type GovernedPlan, relationsRead, type Slot } from 'osl-compiler';
import type { StandbyReads, StandbySource } from './standby-reads.js';

/** A parameter value in wire form: format 0 is text, 1 binary; `bytes` is null for NULL. */
export interface BoundValue {
  readonly format: 0 | 1;
  readonly bytes: Uint8Array | null;
}

/** A value in wire form; a string is a value in text format. */
export type SentValue = BoundValue | string;

/**
 * Settings that only change how a statement's texts are read, how its answer is formatted, or how long it waits for a
 * lock.
 */
export type OutputSetting =
  | 'TimeZone'
  | 'DateStyle'
  | 'IntervalStyle'
  | 'extra_float_digits'
  | 'bytea_output'
  | 'lock_timeout';

/** Setting that passes the caller's rights to row security policies in the database. */
export type RightsSetting = 'osl.rights';

/** Setting that decides whether a plan may depend on parameter values. */
export type PlanSetting = 'plan_cache_mode';

/**
 * `plan_cache_mode` of a session: `auto` lets Postgres reuse one plan for all values, `force_custom_plan` never does.
 */
export type PlanMode = 'auto' | 'force_custom_plan';

/** Settings of a statement that differ from those of a governed session. */
export type StatementSettings = readonly (readonly [
  name: OutputSetting | RightsSetting | PlanSetting,
  value: string,
])[];

/** Isolation levels under which all statements see one state of the data. */
export type IsolationLevel = 'REPEATABLE READ' | 'SERIALIZABLE';

/** An upstream transaction in which several statements run. */
export interface TransactionSnapshot {
  end(): void;
}

export interface ExecuteOptions {
  /** Subject whose share of the sessions the statement uses; null for the gateway's own statements. */
  readonly subject: string | null;
  /** Formats of the columns (0 text, 1 binary): one for each, a single one for all, or an empty list for text. */
  readonly resultFormats: readonly (0 | 1)[];
  /** Maximum number of rows; 0 for no cap. */
  readonly maxRows: number;
  /** Maximum bytes of DataRow messages; 0 for no cap. */
  readonly maxBytes: number;
  /** Timeout in ms from the call to the last row, including the sink's time; 0 leaves only the `statement_timeout`. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | null;
  /** Number of copies that the sink makes of a large row before writing it; none by default. */
  readonly copies?: number;
  /** Called with the time in ms that a database session was occupied, once per session. */
  readonly onTimeSpent?: (ms: number) => void;
  /** Settings for this statement alone. */
  readonly settings?: StatementSettings | undefined;
  /** Permits a standby to answer; by default only the primary may. */
  readonly standby?: StandbyReads | null;
  /** Called each time the statement is sent, with the standby that will answer; null for the primary. */
  readonly onSource?: (source: StandbySource | null) => void;
  /** Snapshot to read from; by default the state committed when the statement begins. */
  readonly snapshot?: TransactionSnapshot | null;
}

export interface RowSink {
  /**
   * Takes `rows` complete DataRow messages as sent by the upstream; the view stays valid. A returned promise applies
   * backpressure: the upstream is not read until it settles. A rejection ends the execution.
   */
  write(dataRows: Uint8Array, rows: number): void | Promise<void>;
  /** Returns the number of rows already sent to the client; without this method, all rows count as sent. */
  rowsSent?(): number;
}

export interface ExecuteResult {
  readonly rows: number;
  /** True if a cap truncated the answer. */
  readonly truncated: boolean;
}

export interface UpstreamStatement {
  readonly sql: string;
  /**
   * `plan` requests the output of EXPLAIN, one line per row, without parameter values, so that no estimate can reveal
   * one.
   */
  readonly output: 'rows' | 'plan';
  /** Plan mode of the shared sessions that may run it; `auto` only if the best plan does not depend on the values. */
  readonly planMode: PlanMode;
  readonly parameterOids: readonly number[];
  /** Column type OIDs that the plan promises. */
  readonly columnOids: readonly number[];
  readonly reads?: StatementReads;
  /** Origin of each parameter value; absent for the gateway's own statements. */
  readonly sources?: readonly ValueSource[];
}

/** Origin of a value. The caller sends `literal` and `client` values; `number` is the `$n` that the caller wrote. */
export type ValueSource =
  | { readonly kind: 'literal'; readonly type: string }
  | { readonly kind: 'client'; readonly type: string; readonly number: number }
  | { readonly kind: 'gateway' };

export interface StatementReads {
  /** The objects that the query names. */
  readonly objects: readonly string[];
  readonly relations: readonly string[];
  /** Tables of the relations as `schema.table`; only the operator may see them. */
  readonly tables: readonly string[];
  /** Names of the output columns, in order. */
  readonly columns: readonly string[];
}

/** Returns the origin of a slot's value: `gateway` for values added by the policy, a metric or the compiler. */
export function sourceOf(slot: Slot): ValueSource {
  if (slot.kind === 'client') return { kind: 'client', type: slot.type, number: slot.index + 1 };
  return slot.kind === 'literal' && slot.written ? { kind: 'literal', type: slot.type } : { kind: 'gateway' };
}

/** Returns the objects and tables that a plan reads, for messages about its failure. */
export function readsOf({ query, objects, outputs }: GovernedPlan): StatementReads {
  const relations = relationsRead(query);
  return {
    objects: shownNames(objects),
    relations: relations.map((r) => r.name),
    tables: relations.map((r) => `${r.schema}.${r.table}`),
    columns: outputs.map((output) => output.source ?? output.name),
  };
}

const METRICS = 'osl.metrics.';

/** Returns the names to show to the caller: only the metrics, if there are any, since their definitions are hidden. */
function shownNames(objects: readonly string[]): readonly string[] {
  const metrics = objects.filter((name) => name.startsWith(METRICS));
  return (metrics.length > 0 ? metrics : objects).map((name) => name.slice(name.lastIndexOf('.') + 1));
}
