import type { LocalTime } from './local-time.js';

/** Conditions of a grant; all must hold for it to count. Frozen. */
export interface Conditions {
  /** Equal for conditions that are written alike, in whatever order. */
  readonly key: string;
  /** ms since the epoch: from then on. */
  readonly startsAt: number;
  /** ms since the epoch: until then, and not at it. */
  readonly endsAt: number;
  readonly hours: Hours | null;
  readonly surfaces: ReadonlySet<string> | null;
  /** Tests the address of a peer. */
  readonly network: ((address: string) => boolean) | null;
  /** Claims of the token, each of which has one of these values. */
  readonly claims: ReadonlyMap<string, ReadonlySet<string>>;
  readonly purposes: ReadonlySet<string> | null;
  readonly breakGlass: BreakGlass | null;
}

/** Days and times of day on the clock of one zone. */
export interface Hours {
  readonly clock: (now: number) => LocalTime;
  /** Minutes since midnight. Where it is later than `to`, the window ends on the next day. */
  readonly from: number;
  readonly to: number;
  /** 0 is Monday: days on which a window begins. */
  readonly days: ReadonlySet<number>;
}

/** Break-glass access of a caller. */
export interface BreakGlass {
  /** Duration in minutes after the glass was broken. */
  readonly minutes: number;
  /** Number of uses by one subject in 24 hours. */
  readonly perDay: number;
}

/**
 * Origin, time and stated purpose of one request: what conditions of grants are held against, beside
 * the claims of its token. A request has one of them, however long its chain.
 */
export interface Circumstances {
  /** Time of the decision: ms since the epoch, on the clock of this machine. */
  readonly now: number;
  /** `rest`, `wire`, `mcp`: where the server took it in, whatever its client says of itself. */
  readonly surface: string;
  /** Of the peer's socket, whatever a header says; null where it has none. */
  readonly address: string | null;
  /** Purpose that the caller states; it counts only if policy and token allow it (`purposeOf`). */
  readonly purpose: string | null;
  /** The glass that its caller has broken. */
  readonly emergency: Emergency | null;
}

/** A break-glass that is on record. */
export interface Emergency {
  /** Joins the records of what was asked under it with that of its reason. */
  readonly id: string;
  /** ms since the epoch */
  readonly startedAt: number;
}

/** Of what is no request: no condition holds. */
export const NOWHERE: Circumstances = Object.freeze({
  now: Number.NaN,
  surface: '',
  address: null,
  purpose: null,
  emergency: null,
});
