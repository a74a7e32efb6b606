import type { LocalTime } from './local-time.js';

/** When a grant counts; it counts where all of it holds. Frozen. */
export interface Conditions {
  /** Equal for conditions that are written alike, in whatever order. */
  readonly key: string;
  /** ms since the epoch: from then on. */
  readonly startsAt: number;
  /** ms since the epoch: until then, and not at it. */
  readonly endsAt: number;
  readonly hours: Hours | null;
  readonly surfaces: ReadonlySet<string> | null;
  /** Whether an address of a peer will do. */
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

/** What a caller may have who breaks the glass. */
export interface BreakGlass {
  /** How long after the glass was broken. */
  readonly minutes: number;
  /** How often one subject may break it in 24 hours. */
  readonly perDay: number;
}
