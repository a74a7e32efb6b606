import type { LimitResult } from './window.js';

/**
 * Uses of one key that a holder may take by itself. Without any, all are spent until the window ends.
 */
export interface Lease {
  readonly tokens: number;
  /** The end of the window, on the clock of `monotonicMs`. */
  readonly endsAt: number;
}

export interface LeaseBookOptions {
  /** Uses of a key that one window lets through. */
  readonly perWindow: number;
  /** Keys that are counted at a time; the surplus shares one count, and gets one use at a time. */
  readonly maxKeys: number;
  /** Number of lease holders: a new one takes a part that leaves as much for each of the others. */
  readonly holders: number;
  /** Asks a holder for what it has not used of its lease of `key`; 0 from one that has gone. */
  reclaim(holder: number, key: string, endsAt: number): Promise<number>;
  readonly now?: () => number;
}

interface LeaseWindow {
  readonly endsAt: number;
  /** Uses that are given out, used or not. */
  granted: number;
  readonly holders: Set<number>;
}

const WINDOW_MS = 1_000;
const SURPLUS = 'surplus';

/**
 * The one count of a limit that several processes hold to: uses are lent to them in portions, and asked back when
 * another runs out. So all of them together never take more than the limit in one window, and nobody is refused while
 * another holds what it has not used. What a holder has that dies counts as used.
 */
export class LeaseBook {
  perWindow: number;
  readonly #options: LeaseBookOptions;
  readonly #now: () => number;
  /** In the order in which their windows end. */
  readonly #windows = new Map<string, LeaseWindow>();
  /** Last request by key: a new request waits until the previous one is answered. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(options: LeaseBookOptions) {
    this.perWindow = options.perWindow;
    this.#options = options;
    this.#now = options.now ?? monotonicMs;
  }

  /** Some of what is left of `key`, or none until its window ends. */
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

  /** Takes back what a holder does not use. */
  handBack(key: string, { tokens, endsAt }: Lease): void {
    const window = this.#windows.get(`k${key}`);
    if (window?.endsAt === endsAt) window.granted -= tokens;
  }

  /** A holder has gone. */
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

  /** True if `own` has a count of its own, or may have one. */
  #has(own: string): boolean {
    const now = this.#now();
    let most = 4; // more than one use can begin
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

const OK: LimitResult = Object.freeze({ ok: true });

/** Asks the book for a lease. `arrived` is called in the very turn in which the answer comes, before what comes after it. */
export type AskLease = (key: string, arrived: (lease: Lease) => void) => Promise<unknown>;

/** The holder's side of a `LeaseBook`: takes from its lease at once, and asks for another where there is none. */
export class LeasedCounter {
  readonly #ask: AskLease;
  readonly #now: () => number;
  /** In the order in which they came, so that those that have ended are found first. */
  readonly #leases = new Map<string, HeldLease>();
  /** Callers that wait for a requested lease, first come, first served. */
  readonly #waiting = new Map<string, LeaseWaiter[]>();

  constructor(ask: AskLease, now: () => number = monotonicMs) {
    this.#ask = ask;
    this.#now = now;
  }

  take(key: string): LimitResult | Promise<LimitResult> {
    return this.#known(key) ?? new Promise((resolve, reject) => this.#wait(key, { resolve, reject }));
  }

  /** Takes one use, if one is here. */
  takeIfLeft(key: string): boolean {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.tokens === 0 || lease.endsAt <= this.#now()) return false;
    lease.tokens -= 1;
    return true;
  }

  /** Gives up what is not used of the lease that ends then. */
  reclaim(key: string, endsAt: number): number {
    const lease = this.#leases.get(key);
    if (lease === undefined || lease.endsAt !== endsAt) return 0;
    this.#leases.delete(key);
    return lease.tokens;
  }

  /** Gives up everything, as where the limit changes. */
  giveUp(): readonly (readonly [key: string, lease: Lease])[] {
    const unused = [...this.#leases].filter(([, { tokens }]) => tokens > 0);
    this.#leases.clear();
    return unused;
  }

  /** Result from the current lease of `key`; null if another lease must be requested. */
  #known(key: string): LimitResult | null {
    if (this.takeIfLeft(key)) return OK;
    const lease = this.#leases.get(key);
    const left = lease?.spent === true ? lease.endsAt - this.#now() : 0;
    if (left <= 0) return null;
    return Object.freeze({ ok: false, retryAfterSeconds: Math.max(1, Math.ceil(left / 1_000)) });
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

  /** Each lease that comes lets one through at least, or says that all are spent: so everybody hears an answer. */
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

  /** A few that have ended, more than one answer can add. */
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

interface HeldLease {
  tokens: number;
  readonly endsAt: number;
  /** It came empty: nothing is left of the window, for anybody. */
  readonly spent: boolean;
}

/** Milliseconds on the clock that all processes of a machine share, and that nobody sets. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}
