import { type GovernedPlan, queryError } from 'osl-compiler';
import {
  type BoundValue,
  type GovernedEngine,
  type IsolationLevel,
  type RowSink,
  type StatementSettings,
  stopError,
  type TransactionSnapshot,
} from '../../engine/index.js';
import type { RequestCall } from '../request/call.js';
import type { ServedVersions } from '../request/caller.js';
import type { Payment } from '../request/limit.js';
import type { QuestionBody } from '../request/request-target.js';
import type { AuthorizedRequest } from '../request/respond.js';

/** A data query. */
export interface DataQuestion extends RequestCall {
  readonly body: QuestionBody;
  /** Declared OIDs of `$1 …`; 0: to be inferred. */
  readonly parameterOids: readonly number[];
  /** Result of `prepare` for the same query. Rights are checked again. */
  readonly prepared?: CompiledQuestion;
  /** True if rollups may be used, which may be out of date. Absent: false. */
  readonly mayBeOld?: boolean;
}

/** A query compiled under the caller's rights at that time. */
export interface CompiledQuestion {
  readonly body: QuestionBody;
  readonly parameterOids: readonly number[];
  readonly plan: GovernedPlan;
  /** Continued by a run that follows at once. */
  readonly authorized: AuthorizedRequest<GovernedPlan>;
  /** Compiling counted against the rate limit, and covers the first run if it follows at once. */
  readonly payment: Payment;
  /** Records that it was compiled but not run. @throws QueryError E5030 */
  record(): Promise<void>;
}

export interface ResultDelivery {
  readonly parameters: readonly BoundValue[];
  /** Empty: text; one: for all columns; else one per column. Or a function of the plan. */
  readonly resultFormats: readonly (0 | 1)[] | ((plan: GovernedPlan) => readonly (0 | 1)[]);
  /** Row limit of the client, below the service's cap; 0: none. */
  readonly maxRows: number;
  readonly signal: AbortSignal | null;
  /** Session settings for the client's statement; they do not affect policy or metric expressions. */
  readonly settings?: StatementSettings;
  /** Snapshots of the enclosing transaction, for REPEATABLE READ and above. */
  readonly snapshots?: Snapshots;
  /**
   * Permits caching if the manifest allows it: `anew` skips the look-up. Absent: neither read nor cached, e.g. within a
   * transaction.
   */
  readonly again?: 'given before' | 'anew';
  /** Copies that the consumer makes of a large row; absent: none. */
  readonly copies?: number;
  /** True if a truncated answer is an error, because its reader cannot be told. */
  readonly whole?: boolean;
  /** Or a function that opens it, given the plan and, per column, if a value is redacted. */
  readonly sink:
    | RowSink
    | ((plan: GovernedPlan, versions: ServedVersions, redacted: readonly boolean[]) => RowSink);
}

/** @throws QueryError E0518 if an answer was cut short and the client cannot be told. */
export function requireWhole({ whole }: Pick<ResultDelivery, 'whole'>, rows: number): void {
  if (whole === true) throw queryError('rowCap', { limit: rows });
}

export function formatsOf(
  { resultFormats }: Pick<ResultDelivery, 'resultFormats'>,
  plan: GovernedPlan,
): readonly (0 | 1)[] {
  return typeof resultFormats === 'function' ? resultFormats(plan) : resultFormats;
}

/** Rejects when `signal` aborts; `work` must have no side effects. @throws QueryError of the abort */
export function unlessStopped<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(stopError(signal));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

export interface AnswerFreshness {
  /** `live`: read from the entities. */
  readonly from: 'live' | 'cache' | 'rollup';
  /** At least as recent as this time; ms since the epoch. */
  readonly asOf: number;
}

/** Whole seconds; 0 if live. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** ISO 8601 text, for REST and SHOW. */
export function asOfText({ asOf }: AnswerFreshness): string {
  return new Date(asOf).toISOString();
}

/** Snapshots of one transaction, one per connector. */
export class Snapshots {
  readonly #level: IsolationLevel;
  readonly #subject: string;
  readonly #byEngine = new Map<GovernedEngine, TransactionSnapshot>();

  constructor(level: IsolationLevel, subject: string) {
    this.#level = level;
    this.#subject = subject;
  }

  /** @throws QueryError E0511 if the engine has none */
  of(engine: GovernedEngine): TransactionSnapshot {
    const known = this.#byEngine.get(engine);
    if (known !== undefined) return known;
    const begun = engine.snapshot(this.#level, this.#subject);
    if (begun === null)
      throw queryError('unresolvable', {
        detail: 'the embedded engine keeps no snapshot for the statements of a transaction',
        hint: 'ask in READ COMMITTED',
      });
    this.#byEngine.set(engine, begun);
    return begun;
  }

  end(): void {
    for (const snapshot of this.#byEngine.values()) snapshot.end();
    this.#byEngine.clear();
  }
}
