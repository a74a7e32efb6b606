import { monotonicMs } from './leases.js';
import { type Charge, checkQuotas, type QuotaCount, type QuotaResult, type Quotas } from './quota-counts.js';
import type { Quota, QuotaUnit } from './quotas.js';

export interface SharedQuotaOptions {
  /** Adds to the shared counts and returns their state. Rejects if the shared counts cannot be reached. */
  readonly add: (charges: readonly Charge[]) => Promise<readonly QuotaCount[]>;
  /** The number of processes that count together, including this one, as far as known. */
  readonly peers: () => number;
  readonly now?: () => number;
}

/** The shared count as last reported. */
interface SharedCount {
  readonly windowMs: number;
  used: number;
  endsAt: number;
  /** The last reported count, and its increase since the report before. */
  reported: number;
  increase: number;
  /** True once little of the quota is left, until the window ends. */
  isNearEnd: boolean;
  /** The time of the last report. */
  asOf: number;
  /** The amount charged here but not reported yet. */
  unsent: number;
}

const INITIAL_COUNT: Omit<SharedCount, 'windowMs'> = {
  used: 0,
  endsAt: 0,
  reported: 0,
  increase: 0,
  isNearEnd: false,
  asOf: Number.NEGATIVE_INFINITY,
  unsent: 0,
};

/** The age in ms after which a count is refreshed before the next request. */
const FRESH_MS = 1_000;
/**
 * Near the end of a quota, every request refreshes its count. The end is near once the rest of the quota is at most
 * the largest of these: a fraction of the quota, a fixed amount, or the increase over this many reports.
 */
const NEAR_END = { part: 0.02, amount: 10, reports: 3 };
/** The time in ms after a failure during which requests do not wait for the shared counts. */
const BACKOFF_MS = 1_000;
/** The pause between two messages, in ms. */
const PAUSE_MS = 10;
const MAX_KEYS = 100_000;
/** Maximum number of refreshes per request; more than one, since a window may end during the request. */
const MAX_REFRESHES = 3;

/**
 * Quotas in one of several processes. Charges are reported within milliseconds and answered with the shared counts, so
 * together the processes overshoot by at most their charges in that time. Near the end of a quota, each request waits
 * for the shared count, so that only requests already running can overshoot. While the shared counts cannot be reached,
 * each process assumes that the others charge as much as it does itself.
 */
export class SharedQuotas implements Quotas {
  readonly #options: SharedQuotaOptions;
  readonly #now: () => number;
  /** The counts by key, ordered by last use. */
  readonly #counts = new Map<string, SharedCount>();
  readonly #due = new Set<string>();
  #sending: Promise<void> | null = null;
  #pause: NodeJS.Timeout | null = null;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SharedQuotaOptions) {
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
  }

  take(quotas: readonly Quota[]): QuotaResult | Promise<QuotaResult> {
    const now = this.#now();
    if (this.#isFresh(quotas, now)) return this.#decide(quotas);
    return this.#refresh(quotas, now).then(() => this.#decide(quotas));
  }

  mayTake(quotas: readonly Quota[]): boolean {
    return this.#isFresh(quotas, this.#now()) && this.#check(quotas).ok;
  }

  async state(quotas: readonly Quota[]): Promise<readonly QuotaCount[]> {
    const startedAt = this.#now();
    if (!this.#isFresh(quotas, startedAt)) await this.#refresh(quotas, startedAt);
    const now = this.#now();
    return quotas.map((quota) => this.#stateOf(quota, now));
  }

  charge(quotas: readonly Quota[], unit: QuotaUnit, amount: number): void {
    for (const quota of quotas) {
      if (quota.unit !== unit) continue;
      const { count, key } = this.#countOf(quota);
      count.unsent += amount;
      this.#due.add(key);
    }
    if (this.#due.size > 0 && this.#sending === null && this.#pause === null) this.#startSending();
  }

  #decide(quotas: readonly Quota[]): QuotaResult {
    const result = this.#check(quotas);
    if (result.ok) this.charge(quotas, 'requests', 1);
    return result;
  }

  #check(quotas: readonly Quota[]): QuotaResult {
    const now = this.#now();
    return checkQuotas(quotas, (quota) => this.#stateOf(quota, now));
  }

  #stateOf(quota: Quota, now: number): QuotaCount {
    const { count } = this.#countOf(quota);
    const used = this.#usedOf(count, now);
    return { used, endsInMs: Math.max(1, count.endsAt - now) };
  }

  /** Estimates the shared count. */
  #usedOf(count: SharedCount, now: number): number {
    if (count.endsAt <= now) {
      count.used = 0;
      count.isNearEnd = false;
      count.endsAt = now + count.windowMs;
    }
    const isAlone = this.#failedAt > count.asOf;
    return count.used + count.unsent * (isAlone ? Math.max(1, this.#options.peers()) : 1);
  }

  /**
   * True if no count needs a refresh. Near the end of a quota, its count must have been reported after `startedAt`,
   * the time of the request.
   */
  #isFresh(quotas: readonly Quota[], startedAt: number): boolean {
    const now = this.#now();
    if (now - this.#failedAt < BACKOFF_MS) return true; // unreachable: do not wait
    return quotas.every((quota) => {
      const { count } = this.#countOf(quota);
      if (count.endsAt <= now || now - count.asOf >= FRESH_MS) return false;
      const remaining = quota.limit - this.#usedOf(count, now);
      const { part, amount, reports } = NEAR_END;
      count.isNearEnd ||= remaining <= Math.max(part * quota.limit, amount, reports * count.increase);
      return !count.isNearEnd || remaining <= 0 || count.asOf > startedAt;
    });
  }

  /** Refreshes the counts of `quotas` until they are fresh or unreachable, at most `MAX_REFRESHES` times. */
  async #refresh(quotas: readonly Quota[], startedAt: number): Promise<void> {
    for (let tries = 0; tries < MAX_REFRESHES && !this.#isFresh(quotas, startedAt); tries++) {
      for (const quota of quotas) this.#due.add(this.#countOf(quota).key);
      await (this.#sending ?? this.#startSending());
    }
  }

  #startSending(): Promise<void> {
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = null;
    const sending = this.#send();
    this.#sending = sending;
    return sending;
  }

  async #send(): Promise<void> {
    await Promise.resolve(); // waits so that charges made in the same turn of the event loop are included
    const due = [...this.#due].map((key) => ({ key, count: this.#counts.get(key) }));
    this.#due.clear();
    const reports = due.flatMap(({ key, count }) => {
      if (count === undefined) return [];
      const amount = count.unsent;
      count.unsent = 0;
      count.used += amount; // counted locally until the reply brings the total of all processes
      return [{ key, count, amount, windowMs: count.windowMs }];
    });
    let pauseMs = PAUSE_MS;
    try {
      const counts = await this.#options.add(
        reports.map(({ key, windowMs, amount }) => ({ key, windowMs, amount })),
      );
      const now = this.#now();
      for (const [i, { count }] of reports.entries()) this.#update(count, counts[i], now);
    } catch {
      // The counting process reports this to the operator.
      pauseMs = BACKOFF_MS;
      this.#failedAt = this.#now();
      for (const { key, count, amount } of reports) {
        count.used = Math.max(0, count.used - amount);
        count.unsent += amount;
        this.#due.add(key);
      }
    }
    this.#sending = null;
    this.#pause = setTimeout(() => this.#resume(), pauseMs).unref();
  }

  /** Sends what accumulated during the pause in a single message. */
  #resume(): void {
    this.#pause = null;
    if (this.#due.size > 0 && this.#sending === null) this.#startSending();
  }

  #update(count: SharedCount, report: QuotaCount | undefined, now: number): void {
    if (report === undefined) return;
    if (report.used < count.reported) count.isNearEnd = false; // a new window
    count.increase = Math.max(0, report.used - count.reported);
    count.reported = report.used;
    count.used = report.used;
    count.endsAt = now + report.endsInMs;
    count.asOf = now;
  }

  #countOf({ key, windowMs }: Pick<Quota, 'key' | 'windowMs'>): {
    readonly key: string;
    readonly count: SharedCount;
  } {
    let count = this.#counts.get(key);
    if (count === undefined) {
      this.#evict();
      count = { windowMs, ...INITIAL_COUNT };
    } else {
      this.#counts.delete(key);
    }
    this.#counts.set(key, count);
    return { key, count };
  }

  /** Once there are too many counts, forgets up to four of the least recently used ones that have nothing to report. */
  #evict(): void {
    if (this.#counts.size < MAX_KEYS) return;
    let remaining = 4;
    for (const [key, { unsent }] of this.#counts) {
      if (remaining-- === 0) return;
      if (unsent === 0) this.#counts.delete(key);
    }
  }
}
