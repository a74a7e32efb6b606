import type { ScalarType } from '../types/types.js';

const DAY = String.raw`\d{4,6}-\d{2}-\d{2}`;
const CLOCK = String.raw`\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?`;
const OFFSET = String.raw` ?(?:z|utc|gmt|[+-]\d{2}(?::?\d{2})?)`;
const FAR = '[+-]?infinity';

const FORMS: ReadonlyMap<ScalarType, RegExp> = new Map<ScalarType, RegExp>([
  ['date', new RegExp(`^(?:${DAY}|${FAR})$`, 'i')],
  ['time', new RegExp(`^${CLOCK}$`)],
  ['timestamp', new RegExp(`^(?:${DAY}(?:[t ]${CLOCK})?|${FAR})$`, 'i')],
  ['timestamptz', new RegExp(`^(?:${DAY}(?:[t ]${CLOCK}(?:${OFFSET})?)?|${FAR})$`, 'i')],
  // With a minus in front, IntervalStyle decides whether it is that of the first part or of all.
  ['interval', /^(?:[^-]*|[+-]?\d+(?:\.\d+)? *[a-z]+)$/i],
  ['timetz', new RegExp(`^${CLOCK}${OFFSET}$`, 'i')],
  ['money', /^-?\d+(?:\.\d{1,2})?$/],
  ['daterange', spans(DAY)],
  ['tsrange', spans(`"?${DAY}(?:[t ]${CLOCK})?"?`)],
  ['tstzrange', spans(`"?${DAY}[t ]${CLOCK}${OFFSET}"?`)],
  ['datemultirange', /^\{\}$/],
  ['tsmultirange', /^\{\}$/],
  ['tstzmultirange', /^\{\}$/],
]);

/** A range of `ends`, of which either may be missing. */
function spans(ends: string): RegExp {
  return new RegExp(`^(?:empty|[[(](?:${ends})?,(?:${ends})?[\\])])$`, 'i');
}

const DAY_ONLY = new RegExp(`^${DAY}$`);
const NO_OFFSET = new RegExp(`^${DAY}[t ]${CLOCK}$`, 'i');

/**
 * Whether Postgres reads `text` as the same value of `type` under every DateStyle and IntervalStyle, and, but for a
 * timestamptz without an offset, in every time zone. `today` and `now` are not such.
 */
export function isSettingsFree(text: string, type: ScalarType): boolean {
  return FORMS.get(type)?.test(text.trim()) ?? true;
}

/** A literal of type timestamptz that `isSettingsFree`, with UTC's offset where it says none. */
export function withOffset(text: string): string {
  const trimmed = text.trim();
  if (DAY_ONLY.test(trimmed)) return `${trimmed} 00:00:00+00`;
  return NO_OFFSET.test(trimmed) ? `${trimmed}+00` : text;
}

const ISO_DAY = /^\s*(\d{4,})-(\d{1,2})-(\d{1,2})(?=[t\s]|$)/i;
const CLOCK_FIELDS = /(?:^|[t\s])(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d*)?)?(?![\d:])/i;

/** False for a date in the order of ISO 8601 that no calendar has. Of other spellings only the database knows. */
export function isPossibleDay(text: string): boolean {
  if (/bc/i.test(text)) return true; // the leap years before our era are counted otherwise
  const [, year, month, day] = (ISO_DAY.exec(text) ?? []).map(Number);
  if (year === undefined || month === undefined || day === undefined) return true;
  return year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysIn(year, month);
}

function daysIn(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** False for a text whose hours, minutes or seconds no clock shows. */
export function isPossibleTime(text: string): boolean {
  const [, hour, minute, second] = (CLOCK_FIELDS.exec(text) ?? []).map(Number);
  if (hour === undefined || minute === undefined) return true;
  return hour <= 24 && minute <= 59 && !(second !== undefined && second > 60);
}

export function isPossibleMoment(text: string): boolean {
  return isPossibleDay(text) && isPossibleTime(text);
}
