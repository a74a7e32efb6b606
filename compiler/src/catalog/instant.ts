/** A moment that a caller wrote, in UTC. */
export interface Instant {
  /** `2026-01-31`, or `2026-01-31 10:00:00.000` where a time was written. */
  readonly text: string;
  /** Whether only the day was written. */
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

/** Whether the calendar has the day; `Date` would take the 31st of a short month for the next one's first. */
function isDate(day: string): boolean {
  const time = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(day) && !day.startsWith('0000');
}
