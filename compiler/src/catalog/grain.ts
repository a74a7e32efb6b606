/** The lengths of time that metrics are grouped by, finest first. Weeks begin on Monday; time is UTC. */
export const GRAINS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'] as const;

export type Grain = (typeof GRAINS)[number];

/**
 * The rows that a cumulative metric takes for a period: all before its end, all from some time on, or those of another
 * period.
 */
export type PeriodSpan =
  | { readonly kind: 'unbounded' }
  /** The `count` units that end with the period. */
  | { readonly kind: 'window'; readonly count: number; readonly unit: Grain }
  /** From the beginning of the `grain` in which the period ends. */
  | { readonly kind: 'to_date'; readonly grain: Grain }
  /** The rows of the period that begins `count` units earlier. */
  | { readonly kind: 'offset'; readonly count: number; readonly unit: Grain }
  /** The rows of the period that begins together with the `grain` in which this period begins. */
  | { readonly kind: 'offset_to_grain'; readonly grain: Grain };

/** The grain that `text` spells, whatever its case, or null. */
export function grainNamed(text: string): Grain | null {
  const lower = text.toLowerCase();
  return GRAINS.find((g) => g === lower) ?? null;
}

/** `7 days`, `1 month`: a whole number from 1 to 9,999 and a grain; null for anything else. */
export function windowNamed(text: string): Extract<PeriodSpan, { kind: 'window' }> | null {
  const [, digits, word] = /^ *([1-9]\d{0,3}) +([a-z]+?)s? *$/.exec(text) ?? [];
  const unit = GRAINS.find((g) => g === word);
  return unit === undefined ? null : Object.freeze({ kind: 'window', count: Number(digits), unit });
}

/** True if `grain` is a day or longer. */
export function isOfDays(grain: Grain): boolean {
  return GRAINS.indexOf(grain) >= GRAINS.indexOf('day');
}

/** A moment that a caller wrote, in UTC. */
export interface Instant {
  /** `2026-01-31`, or `2026-01-31 10:00:00.000` where a time was written. */
  readonly text: string;
  /** True if the text has a day and no time. */
  readonly isDay: boolean;
}

const FORM =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(\.\d{1,3})?)?\s*(Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;

/** An ISO 8601 date, or date and time to the millisecond; without an offset it is UTC. Null for anything else. */
export function instantNamed(text: string): Instant | null {
  const [, day, minutes, seconds = '00', fraction = '', offset = 'Z'] = FORM.exec(text.trim()) ?? [];
  if (day === undefined || !isDate(day)) return null;
  if (minutes === undefined) return Object.freeze({ text: day, isDay: true });
  const zone = /^[+-]\d{2}$/.test(offset) ? `${offset}:00` : offset.replace(/^([+-]\d{2})(\d{2})$/, '$1:$2');
  const time = new Date(`${day}T${minutes}:${seconds}${fraction}${zone.toUpperCase()}`);
  if (Number.isNaN(time.getTime())) return null;
  return Object.freeze({ text: time.toISOString().replace('T', ' ').replace('Z', ''), isDay: false });
}

/** The day after `day`. */
export function dayAfter(day: string): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);
}

const DAY_MS = 86_400_000;

/** True if the calendar has the day; `Date` would read the 31st of a short month as the first of the next. */
function isDate(day: string): boolean {
  const time = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(day) && !day.startsWith('0000');
}

/** A metrics question in one form, however it was spelled. Names are the caller's; their case does not count. */
export interface MetricsRequest {
  readonly metrics: readonly { readonly name: string; readonly alias: string | null }[];
  /** `entity__dimension[__grain]`, `metric_time[__grain]` or an entity. */
  readonly groupBy: readonly { readonly name: string; readonly grain: Grain | null }[];
  /** Predicates of OSL-SQL whose names are `{{ … }}` builders; all must hold. */
  readonly where: readonly string[];
  readonly orderBy: readonly {
    readonly name: string;
    readonly grain: Grain | null;
    readonly descending: boolean;
  }[];
  readonly limit: number | null;
  /** Both ends are included. */
  readonly timeConstraint: { readonly start: Instant | null; readonly end: Instant | null } | null;
  /** Grain of times that state none. Default: day. */
  readonly grain: Grain | null;
}
