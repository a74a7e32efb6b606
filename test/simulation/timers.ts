import type { Channel, Party, Scheduler } from './scheduler.js';

/** Wall-clock time at which every run starts, in ms since the epoch. */
export const START_MS = Date.UTC(2026, 0, 1);

type Callback = (...args: unknown[]) => void;

/** Return value of the global `setTimeout`. */
class Timer {
  readonly #timers: Timers;
  readonly #callback: Callback;
  readonly #args: readonly unknown[];
  readonly #ms: number;
  readonly #repeats: boolean;
  #happening: ReturnType<Channel['insert']> | null = null;

  constructor(timers: Timers, callback: Callback, ms: number, args: readonly unknown[], repeats: boolean) {
    this.#timers = timers;
    this.#callback = callback;
    this.#args = args;
    this.#ms = ms >= 1 && ms <= 2 ** 31 - 1 ? Math.trunc(ms) : 1;
    this.#repeats = repeats;
    this.#schedule();
  }

  #schedule(): void {
    const { channel, scheduler } = this.#timers;
    this.#happening = channel.insert(scheduler.now + 1_000 * this.#ms, `timer ${this.#ms}`, () => {
      this.#happening = null;
      if (this.#repeats) this.#schedule();
      this.#callback(...this.#args);
    });
  }

  close(): void {
    if (this.#happening !== null) this.#timers.channel.remove(this.#happening);
    this.#happening = null;
  }

  refresh(): this {
    this.close();
    this.#schedule();
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }
}

/** Clock, timers and `setImmediate` of one process. */
export class Timers {
  readonly scheduler: Scheduler;
  readonly channel: Channel;
  readonly #immediates: Channel;
  readonly #startedAt: number;

  constructor(scheduler: Scheduler, party: Party) {
    this.scheduler = scheduler;
    this.channel = scheduler.channel(party);
    this.#immediates = scheduler.channel(party);
    this.#startedAt = scheduler.now;
  }

  readonly setTimeout = (callback: Callback, ms = 1, ...args: unknown[]): Timer =>
    new Timer(this, callback, ms, args, false);

  readonly setInterval = (callback: Callback, ms = 1, ...args: unknown[]): Timer =>
    new Timer(this, callback, ms, args, true);

  readonly clearTimeout = (timer: unknown): void => {
    if (timer instanceof Timer) timer.close();
  };

  readonly setImmediate = (callback: Callback, ...args: unknown[]): object => {
    const immediate = { cancelled: false, ref: () => immediate, unref: () => immediate };
    this.#immediates.add(0, 'immediate', () => {
      if (!immediate.cancelled) callback(...args);
    });
    return immediate;
  };

  readonly clearImmediate = (immediate: { cancelled: boolean } | null | undefined): void => {
    if (immediate != null) immediate.cancelled = true;
  };

  /** `node:timers/promises`. */
  readonly promises = {
    setTimeout: <T>(ms?: number, value?: T, options?: { signal?: AbortSignal }): Promise<T | undefined> =>
      new Promise((resolve, reject) => {
        const signal = options?.signal;
        const aborted = (): void => {
          timer.close();
          reject(signal?.reason);
        };
        const timer = this.setTimeout(() => {
          signal?.removeEventListener('abort', aborted);
          resolve(value);
        }, ms);
        if (signal?.aborted === true) aborted();
        else signal?.addEventListener('abort', aborted, { once: true });
      }),
    setImmediate: <T>(value?: T): Promise<T | undefined> =>
      new Promise((resolve) => void this.setImmediate(() => resolve(value))),
  };

  /** Milliseconds since the process started, as `performance.now()` tells them. */
  readonly elapsed = (): number => (this.scheduler.now - this.#startedAt) / 1_000;

  readonly wallClock = (): number => START_MS + Math.floor(this.scheduler.now / 1_000);

  /** The global `Date`, whose current time is virtual. */
  dateClass(): DateConstructor {
    const now = this.wallClock;
    return class extends Date {
      constructor(...args: [] | [number | string | Date]) {
        super(...((args.length === 0 ? [now()] : args) as [number]));
      }
      static override now(): number {
        return now();
      }
    } as DateConstructor; // called as a function it fails, which no code here does
  }
}
