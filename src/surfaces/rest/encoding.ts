import type { GovernedPlan } from 'osl-compiler';
import type { QueryAnswer } from '../../ask/index.js';
import { turns } from '../../engine/index.js';
import type { AnswerHead } from './answer-members.js';
import type { ProblemDocument } from './problem.js';

/** One answer as bytes of one media type, in the order of these methods. */
export interface RowEncoding {
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
  end(answer: QueryAnswer): void;
  /**
   * Says what went wrong after a part of the answer has left. `cut`: the connection must break after that, so that
   * half an answer is never taken for a whole one.
   */
  fail(problem: ProblemDocument): 'ended' | 'cut';
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

/** How an answer of rows is laid out. */
export type AnswerLayout = 'json' | 'ndjson' | 'arrow';

export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

/** By what a client may name; JSON is what others mean too. */
const NAMED: ReadonlyMap<string, AnswerLayout> = new Map([
  [ARROW_STREAM, 'arrow'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

/** Of what a client likes equally, the first. */
const ORDER: readonly AnswerLayout[] = ['arrow', 'ndjson', 'json'];

/**
 * The layout that `accept` prefers by its weights (RFC 9110, 12.5.1). Arrow and NDJSON must be named; where nothing that
 * is served is acceptable the answer is JSON, which the same section allows.
 */
export function layoutOf(accept: string | undefined): AnswerLayout {
  const weights = new Map<AnswerLayout, number>();
  for (const range of (accept ?? '').toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    const layout = NAMED.get(name);
    if (layout === undefined) continue;
    weights.set(layout, Math.max(weights.get(layout) ?? 0, weightOf(parameters)));
  }
  const best = Math.max(0, ...weights.values());
  if (best === 0) return 'json';
  return ORDER.find((layout) => weights.get(layout) === best) ?? 'json';
}

/** 1 where it is not said, 0 where it is no weight. */
function weightOf(parameters: readonly string[]): number {
  const said = parameters.find((parameter) => parameter.startsWith('q='));
  if (said === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(said) ? Number(said.slice(2)) : 0;
}
