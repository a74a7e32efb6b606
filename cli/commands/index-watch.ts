import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import { IndexSignals } from '../../src/service/indexing/index-content.js';

export interface IndexWatchOptions {
  /**
   * Updates the stores of these facets; an empty list means all watched ones. `readAt`: start of the interval that
   * caused this round; null if a notification did.
   */
  readonly round: (names: readonly string[], readAt: Date | null) => Promise<void>;
  readonly names: readonly string[];
  readonly urls: readonly string[];
  readonly everySeconds: number;
  readonly signal: AbortSignal;
  readonly log: ServiceLog;
}

/**
 * Indexes immediately, then at each interval and each notification, until `signal` aborts. Errors after the first
 * round are logged, and the next interval tries again.
 *
 * INVARIANT: rounds start at whole intervals counted from the first one, whatever changes meanwhile and however long a
 * round takes, because callers are shown these times.
 */
export async function watchIndex({
  round,
  names,
  urls,
  everySeconds,
  signal,
  log,
}: IndexWatchOptions): Promise<void> {
  const signals = new IndexSignals(urls, log);
  try {
    await signals.listen();
    const turns = new RoundSchedule(everySeconds * 1_000);
    await round([], turns.take());
    while (!signal.aborted) {
      const heard = await signals.next(turns.wait(), signal);
      if (signal.aborted) return;
      const isTurn = turns.wait() === 0;
      const isAll = isTurn || heard.includes('');
      const known = heard.filter((name) => names.includes(name));
      if (!isAll && known.length === 0) continue;
      await signals.listen();
      await round(isAll ? [] : known, isTurn ? turns.take() : null).catch((error: unknown) => {
        if (!signal.aborted)
          log.error('not indexed: tried again at the next interval', { cause: messageOf(error) });
      });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await signals.close();
  }
}

class RoundSchedule {
  readonly #every: number;
  /** Start time on a monotonic clock, because the system clock may be adjusted. */
  readonly #start = performance.now();
  readonly #began = Date.now();
  #taken = -1;

  constructor(every: number) {
    this.#every = every;
  }

  /** Milliseconds until the next scheduled round; 0 if it should start now. */
  wait(): number {
    return Math.max(0, Math.ceil(this.#start + (this.#taken + 1) * this.#every - performance.now()));
  }

  /** Marks the latest scheduled round as started and returns its time. */
  take(): Date {
    this.#taken = Math.floor((performance.now() - this.#start) / this.#every);
    return new Date(this.#began + this.#taken * this.#every);
  }
}
