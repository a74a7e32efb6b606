import { type GovernedPlan, queryError } from 'osl-compiler';
import {
  type BoundValue,
  type GovernedEngine,
  type IsolationLevel,
  type RowSink,
  type StandbyReads,
  type StatementSettings,
  StepReads,
  stopError,
  type TransactionSnapshot,
} from '../../engine/index.js';
import type { ReceiptRequest } from '../receipts/receipt-request.js';
import type { RequestCall } from '../request/call.js';
import type { Caller, ServedVersions } from '../request/caller.js';
import type { Payment } from '../request/limit.js';
import type { QuestionBody } from '../request/request-target.js';
import type { AuthorizedRequest } from '../request/respond.js';

/** A query from any surface, with the types of its parameters. */
export interface DataQuestion extends RequestCall {
  readonly body: QuestionBody;
  /** Declared type OIDs of `$1`, `$2`, …; 0 means that the type is to be inferred. */
  readonly parameterOids: readonly number[];
  /** The result of `prepare` for the same query. Rights are checked again before it is used. */
  readonly prepared?: CompiledQuestion;
  /** True if rollups, which may be out of date, may be used. Defaults to false. */
  readonly mayBeOld?: boolean;
}

/** The part of a query that its plan depends on. */
export type PlannedQuestion = Pick<DataQuestion, 'body' | 'parameterOids' | 'prepared' | 'mayBeOld'>;

/** A query compiled under the rights that the caller had at that time. */
export interface CompiledQuestion {
  readonly body: QuestionBody;
  readonly parameterOids: readonly number[];
  readonly plan: GovernedPlan;
  /** The authorized request. An execution that follows immediately continues it. */
  readonly authorized: AuthorizedRequest<GovernedPlan>;
  /** Rate-limit charge for compiling. It also covers a first execution that follows immediately. */
  readonly payment: Payment;
  /** Records that the query was compiled but not run. @throws QueryError E5030 */
  record(): Promise<void>;
}

export interface ResultDelivery {
  readonly parameters: readonly BoundValue[];
  /** Formats of the columns (0 text, 1 binary): one each, one for all, or none for text; or a function of the plan. */
  readonly resultFormats: readonly (0 | 1)[] | ((plan: GovernedPlan) => readonly (0 | 1)[]);
  /** The client's row limit, which applies in addition to the service's cap; 0 for none. */
  readonly maxRows: number;
  readonly signal: AbortSignal | null;
  /** Session settings for the client's statement. They do not affect policy or metric expressions. */
  readonly settings?: StatementSettings;
  /** Permits a standby to answer; by default only the primary may. */
  readonly standby?: StandbyReads | null;
  /** The snapshots of the enclosing transaction if its isolation level is REPEATABLE READ or above. */
  readonly snapshots?: Snapshots;
  /**
   * Permits caching if the manifest allows it; `refresh` skips the look-up. If absent, the cache is neither read nor
   * written, e.g. within a transaction.
   */
  readonly caching?: 'reuse' | 'refresh';
  /** Number of copies that the consumer makes of a large row; 0 by default. */
  readonly copies?: number;
  /** The receipt that the client wants; none by default. */
  readonly receipt?: ReceiptRequest | null;
  /** True if truncation is an error, because the client cannot be notified of it. */
  readonly whole?: boolean;
  /** The sink, or a function that opens it for the plan; `redacted` has true for each output redacted in any row. */
  readonly sink:
    | RowSink
    | ((plan: GovernedPlan, versions: ServedVersions, redacted: readonly boolean[]) => RowSink);
}

/** Called for a truncated answer: rejects it if `whole` is set. @throws QueryError E0518 */
export function requireWhole({ whole }: Pick<ResultDelivery, 'whole'>, rows: number): void {
  if (whole === true) throw queryError('rowCap', { limit: rows });
}

export function formatsOf(
  { resultFormats }: Pick<ResultDelivery, 'resultFormats'>,
  plan: GovernedPlan,
): readonly (0 | 1)[] {
  return typeof resultFormats === 'function' ? resultFormats(plan) : resultFormats;
}

/** Rejects with the abort reason as soon as `signal` aborts; `work` must have no side effects. */
export function unlessStopped<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(stopError(signal));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Snapshots of one transaction, one per connector. */
export class Snapshots {
  readonly #level: IsolationLevel;
  readonly #subject: string;
  readonly #standby: StandbyReads | null;
  readonly #byEngine = new Map<GovernedEngine, TransactionSnapshot>();

  /** @param standby permits a standby to answer; null if only the primary may */
  constructor(level: IsolationLevel, subject: string, standby: StandbyReads | null) {
    this.#level = level;
    this.#subject = subject;
    this.#standby = standby;
  }

  /**
   * Returns the transaction's snapshot on `engine`, which its first statement there begins.
   *
   * @param rightsAsOf see `Caller`; a standby is only used if it has everything committed before this time
   * @throws QueryError E0511 if the engine does not support snapshots
   */
  snapshotOn(engine: GovernedEngine, { rightsAsOf }: Pick<Caller, 'rightsAsOf'>): TransactionSnapshot {
    const existing = this.#byEngine.get(engine);
    if (existing !== undefined) return existing;
    const snapshot = engine.snapshot(this.#level, this.#subject, readsSince(this.#standby, rightsAsOf));
    if (snapshot === null)
      throw queryError('unresolvable', {
        detail: 'the embedded engine keeps no snapshot for the statements of a transaction',
        hint: 'ask in READ COMMITTED',
      });
    this.#byEngine.set(engine, snapshot);
    return snapshot;
  }

  end(): void {
    for (const snapshot of this.#byEngine.values()) snapshot.end();
    this.#byEngine.clear();
  }
}

/** Returns `reads`, requiring that answers see everything committed before `time`; without a time, `reads` itself. */
function readsSince(reads: StandbyReads | null, time: number | undefined): StandbyReads | null {
  if (reads === null || time === undefined) return reads;
  const steps = new StepReads(reads);
  steps.requireCommitted(time);
  return steps;
}
