import { ALLOWED, type LimitResult, refusal } from './window.js';

/** Quota of a key that a process may use without asking again. 0 tokens: no quota is left until the window ends. */
export interface Lease {
  readonly tokens: number;
  /** The end of the window, by the clock of `monotonicMs`. */
  readonly endsAt: number;
}

export interface LeaseBookOptions {
  /** Maximum number of uses per key and window. */
  readonly perWindow: number;
  /** Maximum number of keys counted separately; others share one count and lease one use at a time. */
  readonly maxKeys: number;
  /** The number of holders; limits the batch leased to each holder. */
  readonly holders: number;
  /** Reclaims the unused part of a holder's lease; returns 0 if the holder is gone. */
  reclaim(holder: number, key: string, endsAt: number): Promise<number>;
  readonly now?: () => number;
}

interface LeaseWindow {
  readonly endsAt: number;
  /** The number of leased uses, whether used up or not. */
  granted: number;
  readonly holders: Set<number>;
}

const WINDOW_MS = 1_000;
const SURPLUS = 'surplus';

/**
 * Enforces a limit across several processes. Quota is leased in batches and reclaimed when another process runs out, so
 * that the processes together never exceed the limit in one window, and no request is refused while another process has
 * unused quota. Quota leased to a process that dies counts as used.
 */
export class LeaseBook {
  perWindow: number;
  readonly #options: LeaseBookOptions;
  readonly #now: () => number;
  /** The windows by key, ordered by their end. */
  readonly #windows = new Map<string, LeaseWindow>();
  /** The last request for each key; requests for the same key are answered one after another. */
  readonly #lastRequests = new Map<string, Promise<unknown>>();

  constructor(options: LeaseBookOptions) {
    this.perWindow = options.perWindow;
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
  }

  /** Leases a batch of the remaining quota. The lease is empty if no quota is left until the window ends. */
  lease(key: string, holder: number): Promise<Lease> {
    const previous = this.#lastRequests.get(key) ?? Promise.resolve();
    const request = previous.then(() => this.#lease(key, holder));
    this.#lastRequests.set(key, request);
    const done = (): void => {
      if (this.#lastRequests.get(key) === request) this.#lastRequests.delete(key);
    };
    request.then(done, done);
    return request;
  }

  /** Takes back the unused part of a lease, if its window is still current. */
  handBack(key: string, { tokens, endsAt }: Lease): void {
    const window = this.#windows.get(`k${key}`);
    if (window?.endsAt === endsAt) window.granted -= tokens;
  }

  forget(holder: number): void {
    for (const window of this.#windows.values()) window.holders.delete(holder);
  }

  async #lease(key: string, holder: number): Promise<Lease> {
    const ownKey = `k${key}`;
    const windowKey = this.#hasWindow(ownKey) ? ownKey : SURPLUS;
    const window = this.#windowOf(windowKey);
    if (windowKey === SURPLUS) return this.#grant(window, holder, 1);
    if (window.granted >= this.perWindow) await this.#reclaimAll(window, key, holder);
    const remaining = this.perWindow - window.granted;
    return this.#grant(window, holder, Math.ceil(remaining / (2 * this.#options.holders)));
  }

  #grant(window: LeaseWindow, holder: number, portion: number): Lease {
    const { endsAt } = window;
    const tokens = Math.max(0, Math.min(portion, this.perWindow - window.granted));
    window.granted += tokens;
    window.holders.add(holder);
    return { tokens, endsAt };
  }

  async #reclaimAll(window: LeaseWindow, key: string, except: number): Promise<void> {
    const others = [...window.holders].filter((holder) => holder !== except);
    for (const other of others) window.holders.delete(other);
    const { endsAt } = window;
    const unused = await Promise.all(others.map((other) => this.#options.reclaim(other, key, endsAt)));
    window.granted -= unused.reduce((sum, tokens) => sum + tokens, 0);
  }

  /** True if the key has, or may get, a separate count. Also removes expired windows. */
  #hasWindow(ownKey: string): boolean {
    const now = this.#now();
    let remaining = 4; // more than the windows that one use can add
    for (const [old, { endsAt }] of this.#windows) {
      if (endsAt > now || remaining-- === 0) break;
      this.#windows.delete(old);
    }
    return this.#windows.has(ownKey) || this.#windows.size < this.#options.maxKeys;
  }

  #windowOf(windowKey: string): LeaseWindow {
    const now = this.#now();
    const current = this.#windows.get(windowKey);
    if (current !== undefined && current.endsAt > now) return current;
    const window = { endsAt: now + WINDOW_MS, granted: 0, holders: new Set<number>() };
    this.#windows.delete(windowKey);
    this.#windows.set(windowKey, window);
    return window;
  }
}

/** Requests a lease. `onLease` is called synchronously with the answer, before later messages are processed. */
export type RequestLease = (key: string, onLease: (lease: Lease) => void) => Promise<unknown>;

/** The holder's side of a `LeaseBook`: uses its lease immediately, and requests another when it is empty. */
export class LeasedCounter {
  readonly #request: RequestLease;
  readonly #now: () => number;
  /** The leases by key, ordered by arrival, so that expired ones come first. */
  readonly #leases = new Map<string, CurrentLease>();
  /** The callers waiting for a requested lease, in order. */
  readonly #waiters = new Map<string, LeaseWaiter[]>();

  constructor(request: RequestLease, now: () => number = monotonicMs) {
    this.#request = request;
    this.#now = now;
  }

  take(key: string): LimitResult | Promise<LimitResult> {
    return (
      this.#resultFromLease(key) ?? new Promise((resolve, reject) => this.#wait(key, { resolve, reject }))
    );
  }

  /** Takes one use if the current lease has any left; otherwise returns false. */
  takeIfLeft(key: string): boolean {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.tokens === 0 || lease.endsAt <= this.#now()) return false;
    lease.tokens -= 1;
    return true;
  }

  /** Gives up the unused part of the lease that ends at `endsAt` and returns its size. */
  reclaim(key: string, endsAt: number): number {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.endsAt !== endsAt) return 0;
    this.#leases.delete(key);
    return lease.tokens;
  }

  /** Gives up all leases and returns those with unused quota. */
  giveUp(): readonly (readonly [key: string, lease: Lease])[] {
    const unused = [...this.#leases].filter(([, { tokens }]) => tokens > 0);
    this.#leases.clear();
    return unused;
  }

  /** Returns the result from the current lease; null if another lease must be requested. */
  #resultFromLease(key: string): LimitResult | null {
    if (this.takeIfLeft(key)) return ALLOWED;
    const lease = this.#leases.get(key);
    const remainingMs = lease?.arrivedEmpty === true ? lease.endsAt - this.#now() : 0;
    return remainingMs > 0 ? refusal(remainingMs) : null;
  }

  #wait(key: string, waiter: LeaseWaiter): void {
    const waiters = this.#waiters.get(key);
    if (waiters !== undefined) {
      waiters.push(waiter);
      return;
    }
    this.#waiters.set(key, [waiter]);
    this.#requestLease(key);
  }

  #requestLease(key: string): void {
    this.#request(key, (lease) => this.#addLease(key, lease)).catch((error: unknown) => {
      const waiters = this.#waiters.get(key) ?? [];
      this.#waiters.delete(key);
      for (const { reject } of waiters) reject(error);
    });
  }

  /** Every lease either admits at least one waiter, or is empty and refuses all, so every waiter gets an answer. */
  #addLease(key: string, { tokens, endsAt }: Lease): void {
    this.#removeExpired();
    this.#leases.delete(key);
    this.#leases.set(key, { tokens, endsAt, arrivedEmpty: tokens === 0 });
    const waiters = this.#waiters.get(key) ?? [];
    while (waiters.length > 0) {
      const result = this.#resultFromLease(key);
      if (result === null) {
        this.#requestLease(key);
        return;
      }
      waiters.shift()?.resolve(result);
    }
    this.#waiters.delete(key);
  }

  /** Removes up to four expired leases, which is more than one answer can add. */
  #removeExpired(): void {
    const now = this.#now();
    let remaining = 4;
    for (const [key, { endsAt }] of this.#leases) {
      if (remaining-- === 0) break;
      if (endsAt <= now) this.#leases.delete(key);
    }
  }
}

interface LeaseWaiter {
  resolve(result: LimitResult): void;
  reject(error: unknown): void;
}

interface CurrentLease {
  tokens: number;
  readonly endsAt: number;
  /** True if the lease arrived empty, which means that the quota is used up for all holders until the window ends. */
  readonly arrivedEmpty: boolean;
}

/** Milliseconds on the monotonic clock, which all processes of a machine share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
