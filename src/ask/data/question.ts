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
  /** What `prepare` gave for the same question. It spares a look-up; rights are looked at all the same. */
  readonly prepared?: CompiledQuestion;
  /** Whether it may be answered from a rollup, which is of an earlier moment. Absent: from the entities themselves. */
  readonly mayBeOld?: boolean;
}

/** A question that was compiled under the rights of its time. */
export interface CompiledQuestion {
  readonly body: QuestionBody;
  readonly parameterOids: readonly number[];
  readonly plan: GovernedPlan;
  /** The request as it was let in, which goes on where its run follows at once. */
  readonly considered: AuthorizedRequest<GovernedPlan>;
  /** Compiling was counted against the limit; the first run, if it comes at once, is not counted again. */
  readonly payment: Payment;
  /** Puts on record that it was compiled, where no run does so. @throws QueryError E5030 */
  record(): Promise<void>;
}

/** How an answer is to be delivered. */
export interface ResultDelivery {
  /** Values of `$1 …`. */
  readonly parameters: readonly BoundValue[];
  /** None: all text; one: for all columns; otherwise one per column. Or what says so, once the columns are known. */
  readonly resultFormats: readonly (0 | 1)[] | ((plan: GovernedPlan) => readonly (0 | 1)[]);
  /** Rows that the asker wants at most, below the service's own cap; 0 means the service's. */
  readonly maxRows: number;
  readonly signal: AbortSignal | null;
  /** Settings of the asker's session for its own statement; what policy and metrics say does not depend on them. */
  readonly settings?: StatementSettings;
  /** Of the transaction that the question is asked in, where that has one state of the data. */
  readonly snapshots?: Snapshots;
  /**
   * Whether an answer that was given before will do, where the manifest says so: `anew` has it read, and kept. Absent:
   * it is read, and not kept, as within a transaction, which has a state of the data of its own.
   */
  readonly again?: 'given before' | 'anew';
  /** Copies of a large row that whoever takes the rows makes until it has passed them on; absent: none. */
  readonly copies?: number;
  /** The answer must be whole, because its reader cannot be told that rows are missing. */
  readonly whole?: boolean;
  /** Or what makes it, once the columns of the answer are known, and of each whether something in it is redacted. */
  readonly sink:
    | RowSink
    | ((plan: GovernedPlan, versions: ServedVersions, redacted: readonly boolean[]) => RowSink);
}

/** @throws QueryError E0518 where the asker of an answer that was cut short cannot be told so. */
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
  /** `cache`: it was given before. `rollup`: it is of what was aggregated before. */
  readonly from: 'live' | 'cache' | 'rollup';
  /** What it tells was so then, or later; `Date.now()`. */
  readonly asOf: number;
}

/** Whole seconds since then. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** As REST and SHOW tell it. */
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

  /** @throws QueryError E0511 where the engine keeps none */
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
