import { monotonicMs } from './leases.js';
import { type Charge, judge, type QuotaCount, type QuotaResult, type Quotas } from './quota-counts.js';
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
  step: number;
  /** True once little of the quota is left, until the window ends. */
  isNearEnd: boolean;
  /** The time of the last report. */
  asOf: number;
  /** The amount charged here but not reported yet. */
  unsent: number;
}

const NOTHING_KNOWN: Omit<SharedCount, 'windowMs'> = {
  used: 0,
  endsAt: 0,
  reported: 0,
  step: 0,
  isNearEnd: false,
  asOf: Number.NEGATIVE_INFINITY,
  unsent: 0,
};

/** The age in ms after which a count is refreshed before the next request. */
const FRESH_MS = 1_000;
/**
 * Each request refreshes a quota once no more is left of it than the largest of these: a part of the quota, a fixed
 * amount, or the increase over a number of reports.
 */
const NEAR_END = { part: 0.02, amount: 10, reports: 3 };
/** The time in ms after a failure during which requests do not wait for the shared counts. */
const REST_MS = 1_000;
/** The pause between two messages, in ms. */
const PAUSE_MS = 10;
const MAX_KEYS = 100_000;
/** Maximum number of refreshes per request; more than one, because a window may end during the request. */
const TRIES = 3;

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
  readonly #known = new Map<string, SharedCount>();
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
    return this.#ask(quotas, now).then(() => this.#decide(quotas));
  }

  mayTake(quotas: readonly Quota[]): boolean {
    return this.#isFresh(quotas, this.#now()) && this.#judge(quotas).ok;
  }

  async state(quotas: readonly Quota[]): Promise<readonly QuotaCount[]> {
    const began = this.#now();
    if (!this.#isFresh(quotas, began)) await this.#ask(quotas, began);
    const now = this.#now();
    return quotas.map((quota) => this.#stateOf(quota, now));
  }

  charge(quotas: readonly Quota[], unit: QuotaUnit, amount: number): void {
    for (const quota of quotas) {
      if (quota.unit !== unit) continue;
      const { known, key } = this.#of(quota);
      known.unsent += amount;
      this.#due.add(key);
    }
    if (this.#due.size > 0 && this.#sending === null && this.#pause === null) this.#begin();
  }

  #decide(quotas: readonly Quota[]): QuotaResult {
    const result = this.#judge(quotas);
    if (result.ok) this.charge(quotas, 'requests', 1);
    return result;
  }

  #judge(quotas: readonly Quota[]): QuotaResult {
    const now = this.#now();
    return judge(quotas, (quota) => this.#stateOf(quota, now));
  }

  #stateOf(quota: Quota, now: number): QuotaCount {
    const { known } = this.#of(quota);
    const used = this.#usedOf(known, now);
    return { used, endsInMs: Math.max(1, known.endsAt - now) };
  }

  /** Estimates the shared count. */
  #usedOf(known: SharedCount, now: number): number {
    if (known.endsAt <= now) {
      known.used = 0;
      known.isNearEnd = false;
      known.endsAt = now + known.windowMs;
    }
    const isAlone = this.#failedAt > known.asOf;
    return known.used + known.unsent * (isAlone ? Math.max(1, this.#options.peers()) : 1);
  }

  /**
   * True if no count needs a refresh. Near the end of a quota, its count must have been reported after `began`, the
   * time of the request.
   */
  #isFresh(quotas: readonly Quota[], began: number): boolean {
    const now = this.#now();
    if (now - this.#failedAt < REST_MS) return true; // unreachable: do not wait
    return quotas.every((quota) => {
      const { known } = this.#of(quota);
      if (known.endsAt <= now || now - known.asOf >= FRESH_MS) return false;
      const left = quota.most - this.#usedOf(known, now);
      const { part, amount, reports } = NEAR_END;
      known.isNearEnd ||= left <= Math.max(part * quota.most, amount, reports * known.step);
      return !known.isNearEnd || left <= 0 || known.asOf > began;
    });
  }

  /** Refreshes the counts of `quotas` until they are fresh or unreachable, at most `TRIES` times. */
  async #ask(quotas: readonly Quota[], began: number): Promise<void> {
    for (let tries = 0; tries < TRIES && !this.#isFresh(quotas, began); tries++) {
      for (const quota of quotas) this.#due.add(this.#of(quota).key);
      await (this.#sending ?? this.#begin());
    }
  }

  #begin(): Promise<void> {
    if (this.#pause !== null) clearTimeout(this.#pause);
    this.#pause = null;
    const sending = this.#send();
    this.#sending = sending;
    return sending;
  }

  async #send(): Promise<void> {
    await Promise.resolve(); // waits so that charges made in the same turn of the event loop are included
    const due = [...this.#due].map((key) => ({ key, known: this.#known.get(key) }));
    this.#due.clear();
    const told = due.flatMap(({ key, known }) => {
      if (known === undefined) return [];
      const amount = known.unsent;
      known.unsent = 0;
      known.used += amount; // counted locally until the reply brings the total of all processes
      return [{ key, known, amount, windowMs: known.windowMs }];
    });
    let rest = PAUSE_MS;
    try {
      const counts = await this.#options.add(
        told.map(({ key, windowMs, amount }) => ({ key, windowMs, amount })),
      );
      const now = this.#now();
      for (const [i, { known }] of told.entries()) this.#hear(known, counts[i], now);
    } catch {
      // The counting process reports this to the operator.
      rest = REST_MS;
      this.#failedAt = this.#now();
      for (const { key, known, amount } of told) {
        known.used = Math.max(0, known.used - amount);
        known.unsent += amount;
        this.#due.add(key);
      }
    }
    this.#sending = null;
    this.#pause = setTimeout(() => this.#goOn(), rest).unref();
  }

  /** Sends what accumulated during the pause in a single message. */
  #goOn(): void {
    this.#pause = null;
    if (this.#due.size > 0 && this.#sending === null) this.#begin();
  }

  #hear(known: SharedCount, count: QuotaCount | undefined, now: number): void {
    if (count === undefined) return;
    if (count.used < known.reported) known.isNearEnd = false; // a new window
    known.step = Math.max(0, count.used - known.reported);
    known.reported = count.used;
    known.used = count.used;
    known.endsAt = now + count.endsInMs;
    known.asOf = now;
  }

  #of({ key, windowMs }: Pick<Quota, 'key' | 'windowMs'>): {
    readonly key: string;
    readonly known: SharedCount;
  } {
    let known = this.#known.get(key);
    if (known === undefined) {
      this.#forget();
      known = { windowMs, ...NOTHING_KNOWN };
    } else {
      this.#known.delete(key);
    }
    this.#known.set(key, known);
    return { key, known };
  }

  /** Once there are too many counts, forgets up to four of the least recently used ones that have nothing to report. */
  #forget(): void {
    if (this.#known.size < MAX_KEYS) return;
    let most = 4;
    for (const [key, { unsent }] of this.#known) {
      if (most-- === 0) return;
      if (unsent === 0) this.#known.delete(key);
    }
  }
}
