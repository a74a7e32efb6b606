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
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: LeaseBookOptions) {
    this.perWindow = options.perWindow;
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
  }

  /** Leases a batch of the remaining quota. The lease is empty if no quota is left until the window ends. */
  lease(key: string, holder: number): Promise<Lease> {
    const before = this.#turns.get(key) ?? Promise.resolve();
    const turn = before.then(() => this.#lease(key, holder));
    this.#turns.set(key, turn);
    const over = (): void => {
      if (this.#turns.get(key) === turn) this.#turns.delete(key);
    };
    turn.then(over, over);
    return turn;
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
    const own = `k${key}`;
    const counted = this.#has(own) ? own : SURPLUS;
    const window = this.#windowOf(counted);
    if (counted === SURPLUS) return this.#grant(window, holder, 1);
    if (window.granted >= this.perWindow) await this.#reclaimAll(window, key, holder);
    const left = this.perWindow - window.granted;
    return this.#grant(window, holder, Math.ceil(left / (2 * this.#options.holders)));
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
  #has(own: string): boolean {
    const now = this.#now();
    let most = 4; // more than the windows that one use can add
    for (const [old, { endsAt }] of this.#windows) {
      if (endsAt > now || most-- === 0) break;
      this.#windows.delete(old);
    }
    return this.#windows.has(own) || this.#windows.size < this.#options.maxKeys;
  }

  #windowOf(counted: string): LeaseWindow {
    const now = this.#now();
    const known = this.#windows.get(counted);
    if (known !== undefined && known.endsAt > now) return known;
    const window = { endsAt: now + WINDOW_MS, granted: 0, holders: new Set<number>() };
    this.#windows.delete(counted);
    this.#windows.set(counted, window);
    return window;
  }
}

/** Requests a lease. `arrived` is called synchronously with the answer, before later messages are processed. */
export type AskLease = (key: string, arrived: (lease: Lease) => void) => Promise<unknown>;

/** The holder's side of a `LeaseBook`: uses its lease immediately, and requests another when it is empty. */
export class LeasedCounter {
  readonly #ask: AskLease;
  readonly #now: () => number;
  /** The leases by key, ordered by arrival, so that expired ones come first. */
  readonly #leases = new Map<string, CurrentLease>();
  /** The callers waiting for a requested lease, in order. */
  readonly #waiting = new Map<string, LeaseWaiter[]>();

  constructor(ask: AskLease, now: () => number = monotonicMs) {
    this.#ask = ask;
    this.#now = now;
  }

  take(key: string): LimitResult | Promise<LimitResult> {
    return this.#known(key) ?? new Promise((resolve, reject) => this.#wait(key, { resolve, reject }));
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
  #known(key: string): LimitResult | null {
    if (this.takeIfLeft(key)) return ALLOWED;
    const lease = this.#leases.get(key);
    const left = lease?.spent === true ? lease.endsAt - this.#now() : 0;
    return left > 0 ? refusal(left) : null;
  }

  #wait(key: string, waiter: LeaseWaiter): void {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) {
      waiting.push(waiter);
      return;
    }
    this.#waiting.set(key, [waiter]);
    this.#begin(key);
  }

  #begin(key: string): void {
    this.#ask(key, (lease) => this.#arrived(key, lease)).catch((error: unknown) => {
      const waiting = this.#waiting.get(key) ?? [];
      this.#waiting.delete(key);
      for (const { reject } of waiting) reject(error);
    });
  }

  /** Every lease either admits at least one waiter, or is empty and refuses all, so every waiter gets an answer. */
  #arrived(key: string, { tokens, endsAt }: Lease): void {
    this.#forgetEnded();
    this.#leases.delete(key);
    this.#leases.set(key, { tokens, endsAt, spent: tokens === 0 });
    const waiting = this.#waiting.get(key) ?? [];
    while (waiting.length > 0) {
      const known = this.#known(key);
      if (known === null) {
        this.#begin(key);
        return;
      }
      waiting.shift()?.resolve(known);
    }
    this.#waiting.delete(key);
  }

  /** Removes up to four expired leases, which is more than one answer can add. */
  #forgetEnded(): void {
    const now = this.#now();
    let most = 4;
    for (const [key, { endsAt }] of this.#leases) {
      if (most-- === 0) break;
      if (endsAt <= now) this.#leases.delete(key);
    }
  }
}

interface LeaseWaiter {
  resolve(taken: LimitResult): void;
  reject(error: unknown): void;
}

interface CurrentLease {
  tokens: number;
  readonly endsAt: number;
  /** True if the lease arrived empty, which means that the quota is used up for all holders until the window ends. */
  readonly spent: boolean;
}

/** Milliseconds on the monotonic clock, which all processes of a machine share. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
