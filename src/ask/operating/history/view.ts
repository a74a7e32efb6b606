import { BOUNDS_US } from '../../request/meters.js';
import {
  CANCELLED,
  FAILED,
  FIRST_BUCKET,
  POOL,
  QUESTION_WIDTH,
  QUESTIONS,
  REFUSED,
  type RingCopy,
  rowName,
  rowParts,
  SPANS,
  type SpanName,
  STATE,
} from './history.js';

export const GROUPINGS = ['all', 'surface', 'connector'] as const;
export type HistoryGrouping = (typeof GROUPINGS)[number];

/** One value for each step; null if no process has a sample of it, or for a quantile of no durations. */
type StepValues = readonly (number | null)[];

interface QuestionLine {
  /** Surface or connector; null for all together, and for questions that read no connector. */
  readonly name: string | null;
  /** Number of questions that ran, counted in the step in which they ended. */
  readonly questions: StepValues;
  /** Number of requests of any kind that were refused, failed or were cancelled. */
  readonly refused: StepValues;
  readonly failed: StepValues;
  readonly cancelled: StepValues;
  readonly p50_ms: StepValues;
  readonly p95_ms: StepValues;
  readonly p99_ms: StepValues;
}

/** Use of a connector's pools: the highest sample of each step, summed over all processes. */
interface PoolLine {
  readonly connector: string;
  readonly running: StepValues;
  readonly waiting: StepValues;
  readonly size: StepValues;
}

export interface HistoryView {
  readonly span: SpanName;
  /** Start of the first step, RFC 3339. Less than a full period ago if the server started during the period. */
  readonly from: string;
  readonly every_seconds: number;
  readonly lines: readonly QuestionLine[];
  readonly pools: readonly PoolLine[];
  /** Number of audit records not yet on disk. */
  readonly audit_waiting: StepValues;
  readonly memory_bytes: StepValues;
  readonly wire_sessions: StepValues;
}

/**
 * Merges the sampled histories of all processes, from the oldest sampled step to the newest completed one. The result
 * covers at least 30 steps. @param now ms since 1970
 */
export function historyView(
  rings: readonly RingCopy[],
  span: SpanName,
  by: HistoryGrouping,
  now: number,
): HistoryView {
  const { everyMs, count: most } = SPANS[span];
  const end = Math.floor(now / everyMs);
  const first = Math.max(end - most, Math.min(end - LEAST_STEPS, oldestOf(rings, end)));
  const count = end - first;
  const places = rings.map(({ steps }) => placesOf(steps, first, count));
  const found = new Map<string, Sum>();
  const sum = (name: string, width: number): Sum => {
    const known = found.get(name) ?? { width, cells: new Float64Array(width * count) };
    found.set(name, known);
    return known;
  };
  if (by === 'all') sum(QUESTIONS, QUESTION_WIDTH);
  for (const [i, { rows }] of rings.entries())
    for (const [name, row] of rows) include(sum(groupOf(name, by), row.width), row, places[i] ?? []);
  const sums = new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
  const sampled = Array.from({ length: count }, (_, i) => places.some((own) => own[i] !== NOWHERE));
  const column: SeriesReader = (name, at, scale = 1) => {
    const { width, cells } = sums.get(name) ?? { width: 0, cells: [] };
    return sampled.map((known, i) => (known ? scale * (cells[i * width + at] ?? 0) : null));
  };
  return {
    span,
    from: new Date(first * everyMs).toISOString(),
    every_seconds: everyMs / 1_000,
    lines: [...sums]
      .filter(([name]) => rowParts(name)[0] === QUESTIONS)
      .map(([name, sum]) => lineOf(name, sum, sampled, column)),
    pools: [...sums.keys()]
      .filter((name) => rowParts(name)[0] === POOL)
      .map((name) => ({
        connector: rowParts(name)[1] ?? '',
        running: column(name, 0),
        waiting: column(name, 1),
        size: column(name, 2),
      })),
    audit_waiting: column(STATE, 0),
    memory_bytes: column(STATE, 1, 1_024),
    wire_sessions: column(STATE, 2),
  };
}

interface Sum {
  readonly width: number;
  readonly cells: Float64Array;
}

/** Returns the number at position `at` of a row for each step, multiplied by `scale`. */
type SeriesReader = (name: string, at: number, scale?: number) => StepValues;

const NOWHERE = -1;
/** Minimum number of steps shown, for a server that started a short time ago. */
const LEAST_STEPS = 30;

/** Returns the oldest step that any process sampled; `end` if none did. */
function oldestOf(rings: readonly RingCopy[], end: number): number {
  let oldest = end;
  for (const { steps } of rings) for (const step of steps) if (step >= 0) oldest = Math.min(oldest, step);
  return oldest;
}

/** Returns the place in a ring of each of `count` steps from `first`; `NOWHERE` for steps that it does not hold. */
function placesOf(steps: Float64Array, first: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, i) => {
    const place = (first + i) % steps.length;
    return steps[place] === first + i ? place : NOWHERE;
  });
}

function include(sum: Sum, { cells }: { readonly cells: Uint32Array }, places: readonly number[]): void {
  const { width } = sum;
  for (const [step, place] of places.entries()) {
    if (place === NOWHERE) continue;
    for (let i = 0; i < width; i += 1)
      sum.cells[step * width + i] = (sum.cells[step * width + i] ?? 0) + (cells[place * width + i] ?? 0);
  }
}

function groupOf(name: string, by: HistoryGrouping): string {
  const [kind = '', surface = '', connector = ''] = rowParts(name);
  if (kind !== QUESTIONS) return name;
  switch (by) {
    case 'all':
      return kind;
    case 'surface':
      return rowName(kind, surface);
    case 'connector':
      return rowName(kind, connector);
  }
}

function lineOf(
  name: string,
  { cells }: Sum,
  sampled: readonly boolean[],
  column: SeriesReader,
): QuestionLine {
  const counts = sampled.map((known, i) => {
    const from = i * QUESTION_WIDTH;
    return known ? cells.subarray(from + FIRST_BUCKET, from + QUESTION_WIDTH) : null;
  });
  const quantiles = (q: number): StepValues => counts.map((of) => (of === null ? null : quantileMs(of, q)));
  const label = rowParts(name)[1] ?? '';
  return {
    name: label === '' ? null : label,
    questions: counts.map((of) => (of === null ? null : totalOf(of))),
    refused: column(name, REFUSED),
    failed: column(name, FAILED),
    cancelled: column(name, CANCELLED),
    p50_ms: quantiles(0.5),
    p95_ms: quantiles(0.95),
    p99_ms: quantiles(0.99),
  };
}

function totalOf(counts: Float64Array): number {
  let total = 0;
  for (const count of counts) total += count;
  return total;
}

/** Returns a quantile of a histogram in ms, interpolated within its bucket and rounded to 1 µs; null if it is empty. */
function quantileMs(counts: Float64Array, q: number): number | null {
  const all = totalOf(counts);
  if (all === 0) return null;
  const rank = q * all;
  let [below, bucket] = [0, 0];
  while (below + (counts[bucket] ?? 0) < rank) {
    below += counts[bucket] ?? 0;
    bucket += 1;
  }
  const [from, to] = [BOUNDS_US[bucket - 1] ?? 0, BOUNDS_US[bucket]];
  if (to === undefined) return from / 1_000; // no upper bound
  return Math.round(from + ((to - from) * (rank - below)) / (counts[bucket] ?? 1)) / 1_000;
}
