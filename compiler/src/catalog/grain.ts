/** The time grains of metrics, finest first. Weeks start on Monday, and all times are in UTC. */
export const GRAINS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

export type Grain = (typeof GRAINS)[number];

/** The rows that a metric aggregates for each period. */
export type PeriodSpan =
  | { readonly kind: 'unbounded' }
  /** The last `count` units, up to the end of the period. */
  | { readonly kind: 'window'; readonly count: number; readonly unit: Grain }
  /** From the start of the enclosing `grain` to the end of the period. */
  | { readonly kind: 'to_date'; readonly grain: Grain }
  /** The period `count` units earlier. */
  | { readonly kind: 'offset'; readonly count: number; readonly unit: Grain }
  /** The period at the start of the enclosing `grain`. */
  | { readonly kind: 'offset_to_grain'; readonly grain: Grain };

/** Parses a grain, case-insensitively; null if there is no such grain. */
export function parseGrain(text: string): Grain | null {
  const lower = text.toLowerCase();
  return GRAINS.find((g) => g === lower) ?? null;
}

/** Parses a window such as `7 days` or `1 month`: an integer from 1 to 9,999 and a grain; null for anything else. */
export function parseWindow(text: string): Extract<PeriodSpan, { kind: 'window' }> | null {
  const [, digits, word] = /^ *([1-9]\d{0,3}) +([a-z]+?)s? *$/.exec(text) ?? [];
  const unit = GRAINS.find((g) => g === word);
  return unit === undefined ? null : Object.freeze({ kind: 'window', count: Number(digits), unit });
}

export function isDayOrLonger(grain: Grain): boolean {
  return GRAINS.indexOf(grain) >= GRAINS.indexOf('day');
}

/** A point in time as written by the caller, in UTC. */
export interface Instant {
  /** `2026-01-31`, or `2026-01-31 10:00:00.000` if the caller gave a time. */
  readonly text: string;
  /** True for a date without a time. */
  readonly isDay: boolean;
}

const FORM =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,3})?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/**
 * Parses an ISO 8601 date, or date and time to the millisecond, by default in UTC. Returns null for anything else, and
 * for a time that is before year 1 or after year 9999 in UTC.
 */
export function parseInstant(text: string): Instant | null {
  const [, day, minutes, seconds = '00', fraction = '', offset = 'Z'] = FORM.exec(text.trim()) ?? [];
  if (day === undefined || !isDate(day)) return null;
  if (minutes === undefined) return Object.freeze({ text: day, isDay: true });
  const zone = /^[+-]\d{2}$/.test(offset) ? `${offset}:00` : offset.replace(/^([+-]\d{2})(\d{2})$/, '$1:$2');
  const time = new Date(`${day}T${minutes}:${seconds}${fraction}${zone.toUpperCase()}`);
  if (Number.isNaN(time.getTime())) return null;
  const utc = time.toISOString().replace('T', ' ').replace('Z', '');
  // Only texts of equal length compare as the times they denote: in UTC, year 9999 may have become +010000.
  return /^(?!0000)\d{4}-/.test(utc) ? Object.freeze({ text: utc, isDay: false }) : null;
}

/** Returns the next day. Postgres does not accept the sign that `Date` writes before year 10000. */
export function dayAfter(day: string): string {
  const [next = ''] = new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().split('T');
  return next.replace(/^\+0/, '');
}

const DAY_MS = 86_400_000;

/** True for a day that exists. `Date` would silently turn February 30 into a day in March. */
function isDate(day: string): boolean {
  const time = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(day) && !day.startsWith('0000');
}

/** A normalized metrics request. Names are kept as the caller wrote them and compared case-insensitively. */
export interface MetricsRequest {
  readonly metrics: readonly { readonly name: string; readonly alias: string | null }[];
  /** Each name is `entity__dimension[__grain]`, `metric_time[__grain]` or an entity. */
  readonly groupBy: readonly { readonly name: string; readonly grain: Grain | null }[];
  /** OSL-SQL predicates, combined with AND. Names in them are written as `{{ … }}` templates. */
  readonly where: readonly string[];
  readonly orderBy: readonly {
    readonly name: string;
    readonly grain: Grain | null;
    readonly descending: boolean;
  }[];
  readonly limit: number | null;
  /** Both ends are inclusive. */
  readonly timeConstraint: { readonly start: Instant | null; readonly end: Instant | null } | null;
  /** The grain of times that are requested without one. Default: day. */
  readonly grain: Grain | null;
}
