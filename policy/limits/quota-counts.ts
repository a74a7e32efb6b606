import { queryError } from 'osl-compiler';
import { monotonicMs } from './leases.js';
import type { Quota, QuotaUnit } from './quotas.js';

/** An amount to add to a count. */
export interface Charge {
  readonly key: string;
  readonly windowMs: number;
  /** The amount; 0 only queries the count. */
  readonly amount: number;
}

/** The current use of a quota or size of a set, and the remaining time of its window. */
export interface QuotaCount {
  readonly used: number;
  /** The remaining time of the window, in ms. */
  readonly endsInMs: number;
}

/** Success, or the used-up quota whose window ends last. */
export type QuotaResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly quota: Quota; readonly waitMs: number };

/** Quotas that apply in addition to the limits per second. */
export interface Quotas {
  /** Counts one request if no quota is used up; asynchronous if another process counts. */
  take(quotas: readonly Quota[]): QuotaResult | Promise<QuotaResult>;
  /** True if `take` would admit a request immediately; counts nothing. */
  mayTake(quotas: readonly Quota[]): boolean;
  /** Adds `amount` to the counts of the quotas with this unit. */
  charge(quotas: readonly Quota[], unit: QuotaUnit, amount: number): void;
  /** Returns the current counts, for operators; counts nothing. */
  state(quotas: readonly Quota[]): Promise<readonly QuotaCount[]>;
}

/** Maximum number of counts per window length; further keys share one count. */
const MAX_KEYS = 100_000;
const SURPLUS = 'surplus';

interface QuotaWindow {
  readonly endsAt: number;
  used: number;
}

/** Sums of charges by key in fixed windows. A window begins with the first charge of its key. */
export class QuotaBook {
  readonly #now: () => number;
  readonly #maxKeys: number;
  /** Counts by window length, each map ordered by end of window. */
  readonly #windows = new Map<number, Map<string, QuotaWindow>>();

  constructor(now: () => number = monotonicMs, maxKeys = MAX_KEYS) {
    this.#now = now;
    this.#maxKeys = maxKeys;
  }

  add({ key, windowMs, amount }: Charge): QuotaCount {
    const now = this.#now();
    const windows = this.#windowsOf(windowMs, now);
    const ownKey = `k${key}`;
    const windowKey = windows.has(ownKey) || windows.size < this.#maxKeys ? ownKey : SURPLUS;
    let window = windows.get(windowKey);
    if (window === undefined || window.endsAt <= now) {
      if (amount === 0) return { used: 0, endsInMs: windowMs };
      window = { endsAt: now + windowMs, used: 0 };
      windows.delete(windowKey);
      windows.set(windowKey, window);
    }
    window.used += amount;
    return { used: window.used, endsInMs: window.endsAt - now };
  }

  /**
   * Returns the windows of one length. Also removes up to four expired windows; a charge adds at most one, so they do
   * not accumulate.
   */
  #windowsOf(windowMs: number, now: number): Map<string, QuotaWindow> {
    let windows = this.#windows.get(windowMs);
    if (windows === undefined) {
      windows = new Map();
      this.#windows.set(windowMs, windows);
    }
    let remaining = 4;
    for (const [old, { endsAt }] of windows) {
      if (endsAt > now || remaining-- === 0) break;
      windows.delete(old);
    }
    return windows;
  }
}

/** True if the quota admits one more request. */
function admits({ unit, limit }: Quota, used: number): boolean {
  return unit === 'requests' ? used + 1 <= limit : used < limit;
}

const ALLOWED: QuotaResult = Object.freeze({ ok: true });

/** Checks `quotas` against their current counts, which `stateOf` looks up. */
export function checkQuotas(quotas: readonly Quota[], stateOf: (quota: Quota) => QuotaCount): QuotaResult {
  let longest: Extract<QuotaResult, { readonly ok: false }> | null = null;
  for (const quota of quotas) {
    const { used, endsInMs } = stateOf(quota);
    if (!admits(quota, used) && endsInMs > (longest?.waitMs ?? 0))
      longest = { ok: false, quota, waitMs: endsInMs };
  }
  return longest ?? ALLOWED;
}

/** Creates synchronous quotas for a process that counts by itself. */
export function createQuotas(book: QuotaBook = new QuotaBook()): Quotas {
  const stateOf = (quota: Quota): QuotaCount => book.add({ ...quota, amount: 0 });
  const take = (quotas: readonly Quota[]): QuotaResult => {
    const result = checkQuotas(quotas, stateOf);
    if (result.ok) charge(quotas, 'requests', 1);
    return result;
  };
  const charge = (quotas: readonly Quota[], unit: QuotaUnit, amount: number): void => {
    for (const quota of quotas) if (quota.unit === unit) book.add({ ...quota, amount });
  };
  const state = async (quotas: readonly Quota[]): Promise<readonly QuotaCount[]> => quotas.map(stateOf);
  const mayTake = (quotas: readonly Quota[]): boolean => checkQuotas(quotas, stateOf).ok;
  return Object.freeze({ take, mayTake, charge, state });
}

/** Members to add to one set. */
export interface SetAddition {
  readonly key: string;
  readonly windowMs: number;
  /** Maximum size of the set. */
  readonly maxSize: number;
  /** Distinct hashes of entities; an empty list only queries the set. */
  readonly members: readonly string[];
}

export interface SetResult {
  /** Index of the first addition that would exceed its maximum: then nothing was added. Null if all were added. */
  readonly refused: number | null;
  /** The state of each set. */
  readonly counts: readonly QuotaCount[];
}

/** Sets of the distinct entities shown to callers. A set lasts for one window, which begins with its first member. */
export interface EntitySets {
  /**
   * Adds members to all sets, or to none.
   *
   * @throws QueryError E5038 if the sets cannot be reached, and E5031 if there is no room for more members
   */
  add(additions: readonly SetAddition[]): Promise<SetResult>;
}

/** Maximum number of members of all sets together. */
const MAX_MEMBERS = 2_000_000;
const RETRY_SECONDS = 60;

interface EntitySet {
  readonly endsAt: number;
  readonly members: Set<string>;
}

/** Entity sets in memory, for the process that counts. */
export class EntitySetBook {
  readonly #now: () => number;
  readonly #maxMembers: number;
  readonly #sets = new Map<string, EntitySet>();
  #members = 0;

  constructor(now: () => number = monotonicMs, maxMembers = MAX_MEMBERS) {
    this.#now = now;
    this.#maxMembers = maxMembers;
  }

  /** Adds to all sets, or to none. @param additions must have distinct keys @throws QueryError E5031 if there is no room */
  add(additions: readonly SetAddition[]): SetResult {
    const now = this.#now();
    const planned = additions.map(({ key, windowMs, maxSize, members }) => {
      const existing = this.#sets.get(key);
      const set = existing !== undefined && existing.endsAt > now ? existing : null;
      const added = members.filter((member) => set?.members.has(member) !== true);
      const before = set?.members.size ?? 0;
      const exceeds = added.length > 0 && before + added.length > maxSize;
      return { key, set, added, before, exceeds, endsAt: set?.endsAt ?? now + windowMs };
    });
    const refused = planned.findIndex(({ exceeds }) => exceeds);
    if (refused < 0) {
      this.#requireRoom(
        planned.reduce((sum, { added }) => sum + added.length, 0),
        now,
      );
      for (const { key, set, added, endsAt } of planned) this.#insert(key, set, added, endsAt);
    }
    const counts = planned.map(({ before, added, endsAt }) => ({
      used: before + (refused < 0 ? added.length : 0),
      endsInMs: endsAt - now,
    }));
    return { refused: refused < 0 ? null : refused, counts };
  }

  #insert(key: string, current: EntitySet | null, added: readonly string[], endsAt: number): void {
    if (added.length === 0) return;
    if (current === null) this.#drop(key);
    const set = current ?? { endsAt, members: new Set<string>() };
    this.#sets.set(key, set);
    for (const member of added) set.members.add(member);
    this.#members += added.length;
  }

  #requireRoom(more: number, now: number): void {
    if (this.#members + more <= this.#maxMembers) return;
    for (const [key, { endsAt }] of this.#sets) if (endsAt <= now) this.#drop(key);
    if (this.#members + more > this.#maxMembers)
      throw queryError('overloaded', { retryAfterSeconds: RETRY_SECONDS });
  }

  #drop(key: string): void {
    this.#members -= this.#sets.get(key)?.members.size ?? 0;
    this.#sets.delete(key);
  }
}
