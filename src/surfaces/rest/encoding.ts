import type { GovernedPlan } from 'osl-compiler';
import type { Answer } from '../../ask/index.js';
import { turns } from '../../engine/index.js';
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
  /** Copies of a large row that are made while it is written. */
  readonly copies: number;
  /** `dataRows` are whole DataRow messages. */
  rows(dataRows: Uint8Array): void;
  /** As `rows`, of rows that are large, and stops after each portion of them: what is pending may be taken then. */
  portions(dataRows: Uint8Array): Generator<void>;
  end(answer: Answer): void;
  /**
   * Says what went wrong after a part of the answer has left. `cut`: the connection must break after that, so that
   * half an answer is never taken for a whole one.
   */
  fail(problem: Problem): 'ended' | 'cut';
  take(): Buffer;
}

/** Runs of rows that are larger are encoded in portions. */
export const AT_ONCE_BYTES = 65_536;

/** Calls `written` after each portion and at the end, until it gives false; others have their turn in between. */
export async function inPortions(
  portions: Generator<void>,
  written: () => boolean | Promise<boolean>,
): Promise<void> {
  for (const _ of portions) {
    if (!(await written())) return;
    await turns.wait();
  }
  await written();
}
