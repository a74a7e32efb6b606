import type { GovernedPlan, QueryError } from 'osl-compiler';
import type { BoundValue, RowSink, StandbyReads } from '../../engine/index.js';
import type { AnswerFreshness } from '../data/query-answer.js';
import type { Caller } from '../request/caller.js';
import type { Literals, Route } from './route.js';

/** A query of a known shape, for the fast path. */
export interface RoutedQuestion extends RunValues {
  readonly route: Route;
  readonly caller: Caller;
  readonly requestId: string | null;
  /** The statement is the UTF-8 text in bytes [`start`, `end`). */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly literals: Literals;
  readonly timeout: TimeLimit;
  /** Permits a standby to answer; null if only the primary may. */
  readonly standby: StandbyReads | null;
}

export interface RunValues {
  readonly parameters: readonly BoundValue[];
  readonly resultFormats: readonly (0 | 1)[];
}

/** Time after which a query is stopped. */
export interface TimeLimit {
  readonly ms: number;
  /** True if this is the session's limit, false if it is the service's. */
  readonly isOfSession: boolean;
}

/** State shared by all queries of a surface. */
export interface FastQuestions {
  readonly sweep: TimeoutSweep;
  started: number;
}

/** A running query that may take too long. */
interface TimedQuestion {
  /** @param now on the clock of `performance.now()` */
  stopIfLate(now: number): void;
}

/** Interval of timeout checks in ms. Queries may overrun their timeout by that much. */
const INTERVAL_MS = 100;

/** A single timer that enforces the timeouts of all running queries. */
export class TimeoutSweep {
  readonly #running = new Set<TimedQuestion>();
  #timer: NodeJS.Timeout | null = null;

  add(question: TimedQuestion): void {
    this.#running.add(question);
    this.#timer ??= setInterval(() => this.#check(), INTERVAL_MS).unref();
  }

  delete(question: TimedQuestion): void {
    this.#running.delete(question);
  }

  #check(): void {
    if (this.#running.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const now = performance.now();
    for (const question of [...this.#running]) question.stopIfLate(now);
  }
}

/** Receives the result of each fast query, by one call of one of its methods after `begin` has returned. */
export interface AnswerReceiver {
  readonly whole: boolean;
  /** Receives all rows at once; the decision has been recorded. `freshness` is null if the primary answered. */
  onAnswer(plan: GovernedPlan, rows: Uint8Array, count: number, freshness: AnswerFreshness | null): void;
  /** Opens a sink for an answer that turned out to be long. */
  openStream(plan: GovernedPlan): LongAnswerSink;
  /** `text` is the query text that the error's position refers to; empty if it has no position. */
  onFailure(plan: GovernedPlan, error: QueryError, requestId: string, text: string): void;
}

interface LongAnswerSink extends RowSink {
  /** Called when the answer is complete. `truncated` is true if a cap ended the answer early. */
  onFinished(count: number, truncated: boolean, requestId: string, freshness: AnswerFreshness | null): void;
  onFailure(error: QueryError, requestId: string, text: string): void;
}
