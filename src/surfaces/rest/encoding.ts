import type { GovernedPlan } from 'osl-compiler';
import type { QueryAnswer } from '../../ask/index.js';
import { turns } from '../../engine/index.js';
import type { AnswerHead } from './answer-members.js';
import type { ProblemDocument } from './problem.js';

/** Encodes one answer for a media type; methods are called in this order. */
export interface RowEncoding {
  readonly contentType: string;
  /** Bytes written but not taken. */
  readonly pending: number;
  /** Formats of the rows, one for all columns or one per column: 0 Postgres' text, 1 its binary. */
  formats(plan: GovernedPlan): readonly (0 | 1)[];
  begin(head: AnswerHead): void;
  /** Copies of a large row made while it is written. */
  readonly copies: number;
  /** `dataRows` are whole DataRow messages. */
  rows(dataRows: Uint8Array): void;
  /** Like `rows` for large rows: yields after each portion, when pending bytes may be taken. */
  portions(dataRows: Uint8Array): Generator<void>;
  end(answer: QueryAnswer): void;
  /**
   * Reports a failure after part of the answer was sent. `cut`: the connection must be closed afterwards, so that a
   * partial answer is not mistaken for a complete one.
   */
  fail(problem: ProblemDocument): 'ended' | 'cut';
  take(): Buffer;
}

/** Larger runs of rows are encoded in portions. */
export const AT_ONCE_BYTES = 65_536;

/** Calls `written` after each portion and at the end, until it returns false; yields to other work in between. */
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

export type AnswerLayout = 'json' | 'ndjson' | 'arrow';

export const ARROW_STREAM = 'application/vnd.apache.arrow.stream';

/** Media ranges that select a layout; any other means JSON. */
const NAMED: ReadonlyMap<string, AnswerLayout> = new Map([
  [ARROW_STREAM, 'arrow'],
  ['application/x-ndjson', 'ndjson'],
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
]);

/** Preference among equal weights. */
const ORDER: readonly AnswerLayout[] = ['arrow', 'ndjson', 'json'];

/**
 * Layout preferred by `accept` (RFC 9110, 12.5.1). Arrow and NDJSON must be named; if nothing served is acceptable
 * the answer is JSON, which the RFC allows.
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

/** Default 1; 0 if invalid. */
function weightOf(parameters: readonly string[]): number {
  const said = parameters.find((parameter) => parameter.startsWith('q='));
  if (said === undefined) return 1;
  return /^q=(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(said) ? Number(said.slice(2)) : 0;
}
