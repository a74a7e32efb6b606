import type { ComparedPeriod, DayRange, TimeGrain } from './choice.js';

/** Range of days with both ends given, in the form `2026-01-31`. */
export interface Days {
  readonly start: string;
  readonly end: string;
}

/** Distance back to the period to compare with, in calendar months and days. */
interface Shift {
  readonly months: number;
  readonly days: number;
}

const DAY = 86_400_000;

/** Converts a day to milliseconds since the epoch in UTC, the time zone of metrics. */
function at(day: string): number {
  return Date.parse(`${day.slice(0, 10)}T00:00:00Z`);
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

export function isClosed({ start, end }: DayRange): boolean {
  return start !== null && end !== null && start <= end;
}

/** Adds months to `day`. If the resulting month is too short for that day, returns the month's last day. */
export function addMonths(day: string, months: number): string {
  const date = new Date(at(day));
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth() + months];
  const last = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  return dayOf(Date.UTC(year, month, Math.min(date.getUTCDate(), last)));
}

export function addDays(day: string, days: number): string {
  return dayOf(at(day) + days * DAY);
}

function isWholeMonths({ start, end }: Days): boolean {
  return start.endsWith('-01') && addDays(end, 1).endsWith('-01');
}

function monthsIn({ start, end }: Days): number {
  const [from, to] = [new Date(at(start)), new Date(at(end))];
  return (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth() + 1;
}

/** Returns the distance to the earlier period: a year, or the range's length, in days unless it is whole months. */
export function shiftOf(days: Days, compare: Exclude<ComparedPeriod, 'none'>): Shift {
  switch (compare) {
    case 'previous_year':
      return { months: 12, days: 0 };
    case 'previous_period':
      if (isWholeMonths(days)) return { months: monthsIn(days), days: 0 };
      return { months: 0, days: Math.round((at(days.end) - at(days.start)) / DAY) + 1 };
  }
}

const STEPS: Readonly<Record<Exclude<TimeGrain, 'hour'>, Shift>> = {
  day: { months: 0, days: 1 },
  week: { months: 0, days: 7 },
  month: { months: 1, days: 0 },
  quarter: { months: 3, days: 0 },
  year: { months: 12, days: 0 },
};

/** Returns the length of one period, used as the distance to compare over if no range is selected; null for hours. */
export function stepOf(grain: TimeGrain): Shift | null {
  return grain === 'hour' ? null : STEPS[grain];
}

/** Adds a number of periods to `day`. The number may be negative. */
export function addPeriods(day: string, grain: Exclude<TimeGrain, 'hour'>, periods: number): string {
  const { months, days } = STEPS[grain];
  return months === 0 ? addDays(day, days * periods) : addMonths(day, months * periods);
}

/** Returns `days` moved back by `shift`. A range of whole months yields whole months, even if their lengths differ. */
export function earlier(days: Days, shift: Shift): Days {
  if (shift.months === 0)
    return { start: addDays(days.start, -shift.days), end: addDays(days.end, -shift.days) };
  const end = isWholeMonths(days)
    ? addDays(addMonths(addDays(days.end, 1), -shift.months), -1)
    : addMonths(days.end, -shift.months);
  return { start: addMonths(days.start, -shift.months), end };
}

/** Returns the first day of the period that contains a day. Weeks begin on Monday. */
export function periodOf(day: string, grain: TimeGrain): string {
  const date = new Date(at(day));
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  switch (grain) {
    case 'hour':
    case 'day':
      return day.slice(0, 10);
    case 'week':
      return addDays(day, -((date.getUTCDay() + 6) % 7));
    case 'month':
      return dayOf(Date.UTC(year, month, 1));
    case 'quarter':
      return dayOf(Date.UTC(year, month - (month % 3), 1));
    case 'year':
      return dayOf(Date.UTC(year, 0, 1));
  }
}

/** Returns the last day of the period that begins with `day`. */
export function lastDayOf(day: string, grain: TimeGrain): string {
  return grain === 'hour' ? day.slice(0, 10) : addDays(addPeriods(day, grain, 1), -1);
}

/**
 * Returns the index of a period within a range: 0 for the period in which the range begins. Periods of two ranges
 * correspond if they have the same index.
 *
 * @param period as written in answers: a day, or a day with a time for hours
 */
export function placeIn(period: string, start: string, grain: TimeGrain): number {
  const first = periodOf(start, grain);
  const months = monthIndex(period) - monthIndex(first);
  switch (grain) {
    case 'hour':
      return Math.round((timeOf(period) - at(first)) / 3_600_000);
    case 'day':
      return Math.round((at(period) - at(first)) / DAY);
    case 'week':
      return Math.round((at(period) - at(first)) / (7 * DAY));
    case 'month':
      return months;
    case 'quarter':
      return Math.floor(months / 3);
    case 'year':
      return Math.floor(months / 12);
  }
}

function monthIndex(day: string): number {
  const date = new Date(at(day));
  return date.getUTCFullYear() * 12 + date.getUTCMonth();
}

/** Converts the start of a period in an answer to milliseconds since the epoch; NaN if it is not a time. */
export function timeOf(period: string): number {
  if (!/^\d{4}-\d{2}-\d{2}/.test(period)) return Number.NaN;
  const iso = period.replace(' ', 'T').replace(/\+00$/, 'Z');
  return Date.parse(iso.length === 10 || /[Z+]/.test(iso.slice(10)) ? iso : `${iso}Z`);
}

/** Named ranges, relative to `today`. */
export function namedRanges(today: string): readonly { readonly name: string; readonly range: DayRange }[] {
  const month = periodOf(today, 'month');
  const quarter = periodOf(today, 'quarter');
  const year = periodOf(today, 'year');
  return [
    { name: 'All time', range: { start: null, end: null } },
    { name: 'Last 30 days', range: { start: addDays(today, -29), end: today } },
    { name: 'Last 90 days', range: { start: addDays(today, -89), end: today } },
    { name: 'Last month', range: { start: addMonths(month, -1), end: addDays(month, -1) } },
    { name: 'Last quarter', range: { start: addMonths(quarter, -3), end: addDays(quarter, -1) } },
    { name: 'This year', range: { start: year, end: lastDayOf(year, 'year') } },
    { name: 'Last year', range: { start: addMonths(year, -12), end: addDays(year, -1) } },
    { name: 'Last 12 months', range: { start: addMonths(month, -12), end: addDays(month, -1) } },
  ];
}
