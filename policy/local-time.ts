/** Local time. */
export interface LocalTime {
  /** 0 is Monday. */
  readonly day: number;
  /** Minutes since midnight. */
  readonly minute: number;
}

/** The days of a week by the names that a policy gives them. */
export const DAYS = Object.freeze(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const);
export type Day = (typeof DAYS)[number];

export const MINUTES_OF_DAY = 1_440;
const MINUTE_MS = 60_000;

/** `08:30` as minutes since midnight, `24:00` as the end of the day; null for anything else. */
export function minutesOf(text: string): number | null {
  const [, hours, minutes] = /^(\d{2}):([0-5]\d)$/.exec(text) ?? [];
  const found = Number(hours) * 60 + Number(minutes);
  return found <= MINUTES_OF_DAY ? found : null; // NaN is not below it
}

/** A clock in a zone of the IANA database, such as `Europe/Berlin`; null where there is no such zone. */
export function clockIn(zone: string): ((now: number) => LocalTime) | null {
  // An offset is a zone to ICU, and none that anybody means who wants the clock on a wall.
  if (!/^[A-Za-z]/.test(zone)) return null;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
    });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  return (now) => {
    const parts = new Map(format.formatToParts(now).map((p) => [p.type, p.value]));
    const day = (DAYS as readonly string[]).indexOf((parts.get('weekday') ?? '').toLowerCase());
    return { day, minute: Number(parts.get('hour')) * 60 + Number(parts.get('minute')) };
  };
}

/** Start of the minute after `now`: zones differ by whole minutes, so that no local clock changes before. */
export function nextMinute(now: number): number {
  return (Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS;
}
