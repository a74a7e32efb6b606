import type { GovernedPlan, QueryError } from 'osl-compiler';
import type { RowSink } from '../../engine/index.js';
import type { AnswerFreshness } from '../data/answer-freshness.js';

/** Receives the results of fast queries. Called once per query, and never before `begin` has returned. */
export interface AnswerReceiver {
  readonly whole: boolean;
  /** Receives all rows at once; the decision has been recorded. `freshness` is null if the primary answered. */
  answered(plan: GovernedPlan, rows: Uint8Array, count: number, freshness: AnswerFreshness | null): void;
  /** Opens a sink for an answer that turned out to be long. */
  streaming(plan: GovernedPlan): LongAnswerSink;
  /** `text` is the query text that the error's position refers to; empty if it has no position. */
  failed(plan: GovernedPlan, error: QueryError, requestId: string, text: string): void;
}

interface LongAnswerSink extends RowSink {
  /** The answer is complete, or `truncated` by a cap. */
  finished(count: number, truncated: boolean, requestId: string, freshness: AnswerFreshness | null): void;
  failed(error: QueryError, requestId: string, text: string): void;
}
