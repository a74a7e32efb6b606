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
import type { QuestionBody } from '../request/asked.js';
import type { RequestCall } from '../request/call.js';
import type { ServedVersions } from '../request/caller.js';
import type { Payment } from '../request/limit.js';
import type { AuthorizedRequest } from '../request/respond.js';

/** A call that asks for data. */
export interface DataQuestion extends RequestCall {
  readonly body: QuestionBody;
  /** OIDs that the client declared for `$1 …`; 0 leaves the choice to us. */
  readonly parameterOids: readonly number[];
  /** Result of `prepare` for the same question. Saves a look-up; rights are checked all the same. */
  readonly prepared?: CompiledQuestion;
  /** True if it may be answered from a rollup, which may be out of date. Absent: read from the entities themselves. */
  readonly mayBeOld?: boolean;
}

/** A question compiled under the rights that its caller had then. */
export interface CompiledQuestion {
  readonly body: QuestionBody;
  readonly parameterOids: readonly number[];
  readonly plan: GovernedPlan;
  /** The authorized request; it is used for the first run if that follows at once. */
  readonly considered: AuthorizedRequest<GovernedPlan>;
  /** Compiling was counted against the limit; the first run, if it comes at once, is not counted again. */
  readonly payment: Payment;
  /** Records that it was compiled, if it is never run. @throws QueryError E5030 */
  record(): Promise<void>;
}

/** Delivery options of an answer. */
export interface ResultDelivery {
  /** Values of `$1 …`. */
  readonly parameters: readonly BoundValue[];
  /** None: all text; one: for all columns; otherwise one per column. Or a function of the plan that returns them. */
  readonly resultFormats: readonly (0 | 1)[] | ((plan: GovernedPlan) => readonly (0 | 1)[]);
  /** Maximum number of rows that the client wants, below the service's own cap; 0 means the service's. */
  readonly maxRows: number;
  readonly signal: AbortSignal | null;
  /** Settings of the client's session for its own statement; policy and metric expressions do not depend on them. */
  readonly settings?: StatementSettings;
  /** Snapshots of the transaction that the question is part of, if that has one state of the data. */
  readonly snapshots?: Snapshots;
  /**
   * Permits a cached answer if the manifest allows it: `anew` reads it again, and caches it. Absent: it is read and
   * not cached, as within a transaction, which has a state of the data of its own.
   */
  readonly again?: 'given before' | 'anew';
  /** Copies of a large row that the consumer makes before it has passed them on; absent: none. */
  readonly copies?: number;
  /** The answer must be complete, because its reader cannot be told that rows are missing. */
  readonly whole?: boolean;
  /** Or what makes it, once the columns of the answer are known, and of each whether something in it is redacted. */
  readonly sink:
    | RowSink
    | ((plan: GovernedPlan, versions: ServedVersions, redacted: readonly boolean[]) => RowSink);
}

/** @throws QueryError E0518 if an answer was cut short and the client cannot be told. */
export function requireWhole({ whole }: Pick<ResultDelivery, 'whole'>, rows: number): void {
  if (whole === true) throw queryError('rowCap', { limit: rows });
}

/** In which formats the columns of `plan` are to come. */
export function formatsOf(
  { resultFormats }: Pick<ResultDelivery, 'resultFormats'>,
  plan: GovernedPlan,
): readonly (0 | 1)[] {
  return typeof resultFormats === 'function' ? resultFormats(plan) : resultFormats;
}

/** Waits for `work` until `signal` aborts; `work` must be free of side effects. @throws QueryError of the abort */
export function unlessStopped<T>(work: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (signal === null) return work;
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(stopError(signal));
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Age of an answer. */
export interface AnswerFreshness {
  /** `cache`: a cached answer. `rollup`: computed from a rollup. */
  readonly from: 'live' | 'cache' | 'rollup';
  /** The answer is at least as recent as this time; ms since the epoch. */
  readonly asOf: number;
}

/** Age in whole seconds; 0 if live. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** ISO 8601 text, for REST and SHOW. */
export function asOfText({ asOf }: AnswerFreshness): string {
  return new Date(asOf).toISOString();
}

/** The snapshots of one transaction of a caller: one of each connector that it asks. */
export class Snapshots {
  readonly #level: IsolationLevel;
  readonly #subject: string;
  readonly #byEngine = new Map<GovernedEngine, TransactionSnapshot>();

  constructor(level: IsolationLevel, subject: string) {
    this.#level = level;
    this.#subject = subject;
  }

  /** @throws QueryError E0511 if there is none for the engine */
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
