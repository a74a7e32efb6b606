import type { GovernedPlan } from 'osl-compiler';
import type { Answer } from '../../ask/index.js';
import type { AnswerHead } from './answer-members.js';
import type { Problem } from './problem.js';

/** One answer as bytes of one media type, in the order of these methods. */
export interface Encoding {
  readonly contentType: string;
  /** Bytes written and not yet taken. */
  readonly pending: number;
  /** Formats of the rows that it takes, one for all columns or one each: 0 Postgres' text, 1 its binary. */
  formats(plan: GovernedPlan): readonly (0 | 1)[];
  begin(head: AnswerHead): void;
  /** `dataRows` are whole DataRow messages. */
  rows(dataRows: Uint8Array): void;
  end(answer: Answer): void;
  /**
   * Says what went wrong after a part of the answer has left. `cut`: the connection must break after that, so that
   * half an answer is never taken for a whole one.
   */
  fail(problem: Problem): 'ended' | 'cut';
  take(): Buffer;
}
