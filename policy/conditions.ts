/** Conditions of a grant; all must hold for it to count. Frozen. */
export interface Conditions {
  /** Equal for conditions that differ only in order. */
  readonly key: string;
  /** ms since the epoch, inclusive. */
  readonly startsAt: number;
  /** ms since the epoch, exclusive. */
  readonly endsAt: number;
  readonly hours: Hours | null;
  readonly surfaces: ReadonlySet<string> | null;
  /** Tests a peer's address. */
  readonly network: ((address: string) => boolean) | null;
  /** Required token claims with their accepted values. */
  readonly claims: ReadonlyMap<string, ReadonlySet<string>>;
  readonly purposes: ReadonlySet<string> | null;
  readonly breakGlass: BreakGlass | null;
}

/** Days and times of day in one time zone. */
export interface Hours {
  readonly clock: (now: number) => LocalTime;
  /** Minutes since midnight. If later than `to`, the window ends on the next day. */
  readonly from: number;
  readonly to: number;
  /** Days on which a window begins; 0 is Monday. */
  readonly days: ReadonlySet<number>;
}

/** Limits of break-glass access. */
export interface BreakGlass {
  /** Duration of one use, minutes. */
  readonly minutes: number;
  /** Uses per subject in 24 hours. */
  readonly perDay: number;
}

/**
 * Origin, time and stated purpose of one request, against which grant conditions are checked, beside the token's
 * claims.
 */
export interface Circumstances {
  /** Time of the decision, ms since the epoch. */
  readonly now: number;
  /** `rest`, `wire` or `mcp`: the listener that received the request, regardless of what the client states. */
  readonly surface: string;
  /** Address of the peer's socket, regardless of headers; null if it has none. */
  readonly address: string | null;
  /** Purpose that the caller states; it counts only if policy and token allow it (`purposeOf`). */
  readonly purpose: string | null;
  /** Break-glass access in use by the caller. */
  readonly emergency: Emergency | null;
}

export interface Emergency {
  /** Links the audit records of requests under it to the record of its reason. */
  readonly id: string;
  /** ms since the epoch */
  readonly startedAt: number;
}

/** Circumstances in which no condition holds, for uses without a request. */
export const NO_CIRCUMSTANCES: Circumstances = Object.freeze({
  now: Number.NaN,
  surface: '',
  address: null,
  purpose: null,
  emergency: null,
});

export interface LocalTime {
  /** 0 is Monday. */
  readonly day: number;
  /** Minutes since midnight. */
  readonly minute: number;
}

/** Names of weekdays in a policy. */
export const DAYS = Object.freeze(['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const);
export type Day = (typeof DAYS)[number];

export const MINUTES_OF_DAY = 1_440;
const MINUTE_MS = 60_000;

/** Converts `08:30` to minutes since midnight; `24:00` is the end of the day; null for anything else. */
export function minutesOf(text: string): number | null {
  const [, hours, minutes] = /^(\d{2}):([0-5]\d)$/.exec(text) ?? [];
  const found = Number(hours) * 60 + Number(minutes);
  return found <= MINUTES_OF_DAY ? found : null; // false for NaN
}

/** Clock of an IANA time zone such as `Europe/Berlin`; null for an unknown zone. */
export function clockIn(zone: string): ((now: number) => LocalTime) | null {
  // ICU accepts UTC offsets as zones; they ignore daylight saving time and are rejected.
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

/** Start of the minute after `now`. Zones differ by whole minutes, so no local minute changes earlier. */
export function nextMinute(now: number): number {
  return (Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS;
}
