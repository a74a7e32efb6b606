import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import { IndexSignals } from '../../src/service/indexing/index-content.js';

export interface IndexWatchOptions {
  /**
   * Updates the stores of these facets; an empty list means all that are watched. `readAt`: start of the interval whose
   * turn it is; null if a notification caused it.
   */
  readonly round: (names: readonly string[], readAt: Date | null) => Promise<void>;
  readonly names: readonly string[];
  readonly urls: readonly string[];
  readonly everySeconds: number;
  readonly signal: AbortSignal;
  readonly log: ServiceLog;
}

/**
 * Indexes at once, then at each interval and at each notification, until `signal` aborts. Errors after the first round
 * are logged, and the next interval tries again.
 *
 * INVARIANT: rounds start at whole intervals from the first one, whatever changes meanwhile and however long a round
 * takes: callers are shown these times.
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
  /** Monotonic: the system clock may be set. */
  readonly #start = performance.now();
  readonly #began = Date.now();
  #taken = -1;

  constructor(every: number) {
    this.#every = every;
  }

  /** Milliseconds until the next turn; 0 if it is due. */
  wait(): number {
    return Math.max(0, Math.ceil(this.#start + (this.#taken + 1) * this.#every - performance.now()));
  }

  /** Takes the latest turn that is due, and returns its time. */
  take(): Date {
    this.#taken = Math.floor((performance.now() - this.#start) / this.#every);
    return new Date(this.#began + this.#taken * this.#every);
  }
}
