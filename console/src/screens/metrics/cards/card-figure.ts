import { isNumber } from 'osl-compiler/types';
import type { Answer, ValueFormat } from '../../../../../clients/typescript/types.js';
import { notesOf, numberOf, shownChange } from '../answer/columns.js';
import type { CatalogMetric } from '../catalog/protocol.js';
import type { MetricsQuestion } from '../choice/body.js';
import type { TimeGrain } from '../choice/choice.js';
import { addDays, addPeriods, type Days, lastDayOf, periodOf, placeIn } from '../choice/period.js';

/** Grains that a card can have, with the number of periods that it shows. */
const CARD_PERIODS = { day: 30, week: 26, month: 24, quarter: 12, year: 12 } as const;
export type CardGrain = keyof typeof CARD_PERIODS;
export const CARD_GRAINS = Object.keys(CARD_PERIODS) as readonly CardGrain[];

export interface CardPeriod {
  /** First day of the period. */
  readonly start: string;
  /** Null if the metric is not numeric or has no value here: nothing happened, or the policy withholds the group. */
  readonly value: number | null;
}

/** Contents of a card. */
export type CardFigure =
  | {
      readonly kind: 'series';
      readonly grain: CardGrain;
      /** Consecutive periods up to the last period that has a row in the answer. */
      readonly periods: readonly CardPeriod[];
      /** Last value as the server returned it. */
      readonly last: unknown;
      readonly notes: readonly string[];
    }
  | { readonly kind: 'total'; readonly value: unknown; readonly notes: readonly string[] }
  | { readonly kind: 'none' };

type AskMetrics = (body: MetricsQuestion) => Promise<Answer>;

/** Minimum number of months with rows. With fewer, a card with the grain `auto` is queried by day as well. */
const FEWEST = 4;

/**
 * Queries a metric for a card: its value over all rows if it has no time, otherwise its last whole periods. One query
 * is usually enough. If the grain is `auto` and too few months have rows, days are queried too; if the last periods
 * have no rows, earlier ones are queried.
 *
 * @param today in UTC, the time zone of metrics
 * @throws like `ask`
 */
export async function cardFigure(
  metric: CatalogMetric,
  grain: CardGrain | 'auto',
  today: string,
  ask: AskMetrics,
): Promise<CardFigure> {
  if (metric.time === 'no') return totalIn(metric, await ask({ metrics: [metric.name] }));
  const asked = grain === 'auto' ? 'month' : grain;
  const answer = await ask(periodsBody(metric.name, asked, lastPeriods(asked, today)));
  if (grain === 'auto' && answer.rows.length < FEWEST) {
    const days = await ask(periodsBody(metric.name, 'day', lastPeriods('day', today)));
    if (days.rows.length > answer.rows.length) return seriesIn(metric, 'day', days);
  }
  if (answer.rows.length > 0) return seriesIn(metric, asked, answer);
  const { end } = lastPeriods(asked, today);
  return seriesIn(metric, asked, await ask(periodsBody(metric.name, asked, { end })));
}

/** Returns the range of the last whole periods, which ends before the period that contains `today`. */
function lastPeriods(grain: CardGrain, today: string): Days {
  const current = periodOf(today, grain);
  return { start: addPeriods(current, grain, -CARD_PERIODS[grain]), end: addDays(current, -1) };
}

function periodsBody(
  metric: string,
  grain: CardGrain,
  range: { readonly start?: string; readonly end: string },
): MetricsQuestion {
  return {
    metrics: [metric],
    group_by: [{ name: 'metric_time', grain }],
    order_by: [{ name: 'metric_time', grain, descending: true }],
    limit: CARD_PERIODS[grain],
    time_constraint: range,
  };
}

function totalIn({ name }: CatalogMetric, answer: Answer): CardFigure {
  const column = columnNamed(answer, name);
  return { kind: 'total', value: answer.rows[0]?.[column] ?? null, notes: remarksOf(answer) };
}

function seriesIn({ name, type }: CatalogMetric, grain: CardGrain, answer: Answer): CardFigure {
  const [time, value] = [columnNamed(answer, `metric_time__${grain}`), columnNamed(answer, name)];
  const rows = answer.rows.filter((row) => /^\d{4}-\d{2}-\d{2}/.test(String(row[time]))).toReversed();
  const [first, last] = [rows[0], rows.at(-1)];
  if (first === undefined || last === undefined) return { kind: 'none' };
  const start = dayIn(first[time]);
  const values = new Map(rows.map((row) => [placeIn(dayIn(row[time]), start, grain), row[value]]));
  const periods: CardPeriod[] = [];
  let at = start;
  for (let place = 0; place <= placeIn(dayIn(last[time]), start, grain); place += 1) {
    periods.push({ start: at, value: isNumber(type) ? numberOf(values.get(place)) : null });
    at = addDays(lastDayOf(at, grain), 1);
  }
  // Long gaps without rows can produce more periods than a card can show.
  return {
    kind: 'series',
    grain,
    periods: periods.slice(-2 * CARD_PERIODS[grain]),
    last: last[value],
    notes: remarksOf(answer),
  };
}

function columnNamed({ columns }: Answer, name: string): string {
  return columns.find((c) => c.name.toLowerCase() === name.toLowerCase())?.name ?? name;
}

function dayIn(value: unknown): string {
  return String(value).slice(0, 10);
}

/** Returns the notes on an answer, except its number of rows. */
function remarksOf(answer: Answer): readonly string[] {
  return notesOf(answer).slice(1);
}

const MONTHS = new Intl.DateTimeFormat('en', { month: 'short', year: 'numeric', timeZone: 'UTC' });
const DAYS = new Intl.DateTimeFormat('en', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZone: 'UTC',
});

/** Returns the name of a period: `Aug 2026`, `Q3 2026`. */
export function periodName(start: string, grain: TimeGrain): string {
  const date = new Date(`${start.slice(0, 10)}T00:00:00Z`);
  switch (grain) {
    case 'hour':
      return start;
    case 'day':
      return DAYS.format(date);
    case 'week':
      return `week of ${DAYS.format(date)}`;
    case 'month':
      return MONTHS.format(date);
    case 'quarter':
      return `Q${Math.floor(date.getUTCMonth() / 3) + 1} ${date.getUTCFullYear()}`;
    case 'year':
      return String(date.getUTCFullYear());
  }
}

/** Change from the previous period, as a direction and as text. */
interface CardChange {
  readonly direction: 'up' | 'down' | 'same';
  /** `+3.1%`, or for percentages the difference in points. */
  readonly text: string;
}

const POINTS = new Intl.NumberFormat('en', { maximumFractionDigits: 1, signDisplay: 'exceptZero' });

/** Returns the change between two values; null if a value is missing, or if the change would be relative to 0. */
export function changeBetween(
  now: number | null,
  before: number | null,
  format: ValueFormat | null,
): CardChange | null {
  if (now === null || before === null) return null;
  const isShare = format?.kind === 'percent';
  if (!isShare && before === 0) return null;
  const text = isShare
    ? `${POINTS.format((now - before) * 100)} points`
    : shownChange((now - before) / Math.abs(before));
  return { direction: now > before ? 'up' : now < before ? 'down' : 'same', text };
}
