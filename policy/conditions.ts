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

/**
 * Where one request comes from, when, and what its caller says of it: what conditions of grants are held against, beside
 * the claims of its token. A request has one of them, however long its chain.
 */
export interface Circumstances {
  /** When it is decided: ms since the epoch, on the clock of this machine. */
  readonly now: number;
  /** `rest`, `wire`, `mcp`: where the server took it in, whatever its client says of itself. */
  readonly surface: string;
  /** Of the peer's socket, whatever a header says; null where it has none. */
  readonly address: string | null;
  /** What its caller says that it is for; it counts only where policy and token allow it (`purposeOf`). */
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
