import { monotonicMs } from './leases.js';
import type { Quota, QuotaUnit } from './quotas.js';
import type { LimitResult } from './window.js';

/** Amount to add to a count. */
export interface Charge {
  readonly key: string;
  readonly windowMs: number;
  /** 0 only asks. */
  readonly amount: number;
}

/** State of a count. */
export interface QuotaCount {
  readonly used: number;
  /** Until its window ends, ms. */
  readonly endsInMs: number;
}

/** Quotas of requests beside the limits of each second. */
export interface Quotas {
  /** Counts one request, where something is left of every quota. A promise where others count too. */
  take(quotas: readonly Quota[]): LimitResult | Promise<LimitResult>;
  /** True if `take` would let a request through at once; counts nothing. */
  mayTake(quotas: readonly Quota[]): boolean;
  /** Counts what an answer took. */
  charge(quotas: readonly Quota[], unit: QuotaUnit, amount: number): void;
  /** State of each quota, for operators; counts nothing. */
  standing(quotas: readonly Quota[]): Promise<readonly QuotaCount[]>;
}

/** Counts that are held at a time; the surplus of one length of window shares one. */
const MAX_KEYS = 100_000;
const SURPLUS = 'surplus';

interface QuotaWindow {
  readonly endsAt: number;
  used: number;
}

/** Sums of what is charged, each in fixed windows that begin with its first charge. */
export class QuotaBook {
  readonly #now: () => number;
  readonly #maxKeys: number;
  /** By the length of their windows; each in the order in which those end. */
  readonly #windows = new Map<number, Map<string, QuotaWindow>>();

  constructor(now: () => number = monotonicMs, maxKeys = MAX_KEYS) {
    this.#now = now;
    this.#maxKeys = maxKeys;
  }

  add({ key, windowMs, amount }: Charge): QuotaCount {
    const now = this.#now();
    const windows = this.#of(windowMs, now);
    const own = `k${key}`;
    const counted = windows.has(own) || windows.size < this.#maxKeys ? own : SURPLUS;
    let window = windows.get(counted);
    if (window === undefined || window.endsAt <= now) {
      window = { endsAt: now + windowMs, used: 0 };
      windows.delete(counted);
      windows.set(counted, window);
    }
    window.used += amount;
    return { used: window.used, endsInMs: window.endsAt - now };
  }

  /** A few that have ended are forgotten, more than one charge can begin. */
  #of(windowMs: number, now: number): Map<string, QuotaWindow> {
    let windows = this.#windows.get(windowMs);
    if (windows === undefined) {
      windows = new Map();
      this.#windows.set(windowMs, windows);
    }
    let most = 4;
    for (const [old, { endsAt }] of windows) {
      if (endsAt > now || most-- === 0) break;
      windows.delete(old);
    }
    return windows;
  }
}

const OK: LimitResult = Object.freeze({ ok: true });

/** True if `count` leaves something of `quota` for one more request. */
export function leaves({ unit, most }: Quota, used: number): boolean {
  return unit === 'requests' ? used + 1 <= most : used < most;
}

export function refusal(endsInMs: number): LimitResult {
  return Object.freeze({ ok: false, retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1_000)) });
}

/** The quotas of a process that counts alone: it answers at once. */
export function createQuotas(book: QuotaBook = new QuotaBook()): Quotas {
  /** 0 where something is left of each; otherwise how long it takes until there is again, ms. */
  const waitOf = (quotas: readonly Quota[]): number => {
    let wait = 0;
    for (const quota of quotas) {
      const { used, endsInMs } = book.add({ ...quota, amount: 0 });
      if (!leaves(quota, used)) wait = Math.max(wait, endsInMs);
    }
    return wait;
  };
  const take = (quotas: readonly Quota[]): LimitResult => {
    const wait = waitOf(quotas);
    if (wait > 0) return refusal(wait);
    charge(quotas, 'requests', 1);
    return OK;
  };
  const charge = (quotas: readonly Quota[], unit: QuotaUnit, amount: number): void => {
    for (const quota of quotas) if (quota.unit === unit) book.add({ ...quota, amount });
  };
  const standing = async (quotas: readonly Quota[]): Promise<readonly QuotaCount[]> =>
    quotas.map((quota) => book.add({ ...quota, amount: 0 }));
  const mayTake = (quotas: readonly Quota[]): boolean => waitOf(quotas) === 0;
  return Object.freeze({ take, mayTake, charge, standing });
}
