import { type ApprovalRule, type ApprovedGrants, NOTHING_APPROVED } from './approvals.js';

/** The conditions of a grant; the grant is ignored unless all of them hold. Frozen. */
export interface CompiledConditions {
  /** A key that is equal for conditions that differ only in order. */
  readonly key: string;
  /** Start, ms since the epoch, inclusive. */
  readonly startsAt: number;
  /** End, ms since the epoch, exclusive. */
  readonly endsAt: number;
  readonly hours: Hours | null;
  readonly surfaces: ReadonlySet<string> | null;
  /** Returns true if the peer's address is allowed; null if every address is allowed. */
  readonly network: ((address: string) => boolean) | null;
  /** Required token claims with their accepted values. */
  readonly claims: ReadonlyMap<string, ReadonlySet<string>>;
  readonly purposes: ReadonlySet<string> | null;
  readonly breakGlass: BreakGlass | null;
  readonly approval: ApprovalRule | null;
}

/** Days and times of day in one time zone. */
export interface Hours {
  readonly clock: (now: number) => LocalTime;
  /** Start in minutes since midnight. If it is later than `to`, the window ends on the next day. */
  readonly from: number;
  readonly to: number;
  /** Days on which a window begins; 0 is Monday. */
  readonly days: ReadonlySet<number>;
}

/** Limits on break-glass access. */
export interface BreakGlass {
  /** Maximum duration of one use, in minutes. */
  readonly minutes: number;
  /** Maximum number of uses per subject in 24 hours. */
  readonly perDay: number;
}

/**
 * Origin, time and stated purpose of one request. Grant conditions are checked against these and the token's claims.
 */
export interface Circumstances {
  /** The time of the decision, ms since the epoch. */
  readonly now: number;
  /** `rest`, `wire` or `mcp`: the listener that received the request, regardless of what the client states. */
  readonly surface: string;
  /** The address of the peer's socket, regardless of headers; null if it has none. */
  readonly address: string | null;
  /** The purpose that the caller states; it only has effect if policy and token allow it (`purposeOf`). */
  readonly purpose: string | null;
  /** The break-glass access that the caller is using; null if none is in use. */
  readonly emergency: Emergency | null;
  /** The approvals that the caller has for this purpose and task. */
  readonly approved: ApprovedGrants;
}

export interface Emergency {
  /** Id that links the audit records of requests made under this access to the record that states the reason. */
  readonly id: string;
  /** Start of the access, ms since the epoch. */
  readonly startedAt: number;
}

/** Circumstances in which no condition holds, for uses without a request. */
export const NO_CIRCUMSTANCES: Circumstances = Object.freeze({
  now: Number.NaN,
  surface: '',
  address: null,
  purpose: null,
  emergency: null,
  approved: NOTHING_APPROVED,
});

export interface LocalTime {
  /** Day of the week; 0 is Monday. */
  readonly day: number;
  /** Time of day in minutes since midnight. */
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
  const total = Number(hours) * 60 + Number(minutes);
  return total <= MINUTES_OF_DAY ? total : null; // also null if `total` is NaN
}

/** Returns a clock for an IANA time zone such as `Europe/Berlin`; null for an unknown zone. */
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

/** Time in ms for which rights that depend on an approval are used before the approval is checked again. */
export const APPROVAL_CHECK_MS = 250;

/** The start of the minute after `now`. Time zones differ by whole minutes, so no local minute changes earlier. */
export function nextMinute(now: number): number {
  return (Math.floor(now / MINUTE_MS) + 1) * MINUTE_MS;
}
