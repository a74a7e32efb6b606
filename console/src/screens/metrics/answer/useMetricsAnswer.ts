import { useEffect, useState } from 'react';
import type { Answer } from '../../../../../clients/typescript/types.js';
import type { SignedInCaller } from '../../../api/caller.js';
import { postJson } from '../../../api/http.js';
import { bodyOf } from '../choice/body.js';
import type { Choice } from '../choice/choice.js';
import { type Days, earlier, isClosed, shiftOf, stepOf } from '../choice/period.js';
import { type MetricsReading, readingOf } from './columns.js';
import { compareAnswers, daysOf, type PeriodComparison } from './table.js';

/** Answer to the selected query and, if the choice asks for a comparison, the comparison with the other period. */
export interface MetricsAnswer {
  readonly choice: Choice;
  readonly answer: Answer;
  readonly reading: MetricsReading;
  readonly compared: PeriodComparison | null;
  /** Reason why the requested comparison is missing or has gaps; null if it is complete or was not requested. */
  readonly uncompared: string | null;
}

export type MetricsAnswerState =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'asking'; readonly last: MetricsAnswer | null }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | { readonly kind: 'answered'; readonly asked: MetricsAnswer };

/** Runs the query whenever the choice changes, cancelling the previous query. */
export function useMetricsAnswer(caller: SignedInCaller, choice: Choice, link: string): MetricsAnswerState {
  const [state, setState] = useState<MetricsAnswerState>({ kind: 'nothing' });
  const [tries, setTries] = useState(0);
  // `link` identifies the choice, which is a new object on each render.
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  useEffect(() => {
    if (choice.metrics.length === 0) {
      setState({ kind: 'nothing' });
      return;
    }
    const leaving = new AbortController();
    setState((now) => ({ kind: 'asking', last: now.kind === 'answered' ? now.asked : null }));
    askMetrics(caller, choice, leaving.signal).then(
      (asked) => {
        if (!leaving.signal.aborted) setState({ kind: 'answered', asked });
      },
      (error: unknown) => {
        if (!leaving.signal.aborted) {
          setState({ kind: 'failed', error, again: () => setTries((n) => n + 1) });
        }
      },
    );
    return () => leaving.abort();
  }, [caller, link, tries]);
  return state;
}

/** Maximum number of rows read for the other period: high, as they are unsorted and each row needs its counterpart. */
const MOST_BEFORE = 10_000;

/** Runs the query of a choice and, for a comparison, the same query for the other period. Throws like `postJson`. */
export async function askMetrics(
  caller: SignedInCaller,
  choice: Choice,
  signal?: AbortSignal,
): Promise<MetricsAnswer> {
  const options = signal === undefined ? {} : { signal };
  const answer = await postJson<Answer>(caller, '/osl/query', bodyOf(choice), options);
  const reading = readingOf(choice, answer.columns, answer.rows);
  const plain = { choice, answer, reading, compared: null, uncompared: null };
  if (choice.compare === 'none') return plain;
  const span = spanOf(choice, reading);
  if (typeof span === 'string') return { ...plain, uncompared: span };
  const before = earlier(span.days, span.shift);
  const other: Choice = { ...choice, range: before, order: null, limit: MOST_BEFORE };
  const body = { ...bodyOf(other), order_by: [] };
  const past = await postJson<Answer>(caller, '/osl/query', body, options);
  const isWhole = choice.groups.length === 0 || isComplete(answer, choice.limit);
  const earlierReading = readingOf(other, past.columns, past.rows);
  const compared = compareAnswers(reading, span.days, earlierReading, before, isWhole);
  return { ...plain, compared, uncompared: isComplete(past, MOST_BEFORE) ? null : INCOMPLETE };
}

/** Said if an answer for the other period lacks rows. */
const INCOMPLETE =
  'The other period has more rows than could be read, so some earlier values are missing: group by less, or filter.';

/** False if the answer may lack rows, because of a cap or the limit of its query. */
function isComplete({ truncated, rows }: Answer, limit: number): boolean {
  return !truncated && rows.length < limit;
}

/** Returns the days to compare and the distance to the other period, or why they cannot be compared. */
function spanOf(
  { range, compare }: Choice,
  reading: MetricsReading,
): { readonly days: Days; readonly shift: NonNullable<ReturnType<typeof stepOf>> } | string {
  if (compare === 'none') return 'nothing is compared';
  const { start, end } = range;
  const picked = isClosed(range) && start !== null && end !== null ? { start, end } : null;
  const days = picked ?? daysOf(reading);
  if (days === null) return 'Pick a time range, or group by time, to compare with another period.';
  if (picked !== null || compare === 'previous_year' || reading.time === null)
    return { days, shift: shiftOf(days, compare) };
  const step = stepOf(reading.time.grain);
  return step === null ? 'Pick a time range to compare hours with those before.' : { days, shift: step };
}
