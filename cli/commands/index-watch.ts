import type { ServiceLog } from '../../src/base/log.js';
import { messageOf } from '../../src/base/thrown.js';
import { IndexSignals } from '../../src/service/indexing/index-signals.js';

export interface IndexWatchOptions {
  /**
   * Brings the stores of these facets up to date; of all that are watched where none is named. `readAt` is when a round
   * began whose turn it was; null for one that a changed row brought about.
   */
  readonly round: (names: readonly string[], readAt: Date | null) => Promise<void>;
  /** Facets that are watched. */
  readonly names: readonly string[];
  /** Databases that tell of changes. */
  readonly urls: readonly string[];
  readonly everySeconds: number;
  readonly signal: AbortSignal;
  readonly log: ServiceLog;
}

/**
 * Rounds until `signal` ends them: at once, then at each interval, and where a database tells of a change. What fails
 * after the first round is told, and tried again.
 *
 * INVARIANT: turns come at whole intervals from the first one, whatever changes meanwhile and however long a round
 * takes: callers are told of them.
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

/** Whole intervals from the first turn on. */
class RoundSchedule {
  readonly #every: number;
  /** On the clock of `performance.now()`, which nobody sets. */
  readonly #start = performance.now();
  readonly #began = Date.now();
  #taken = -1;

  constructor(every: number) {
    this.#every = every;
  }

  /** Milliseconds until the next turn; 0 where it is there. */
  wait(): number {
    return Math.max(0, Math.ceil(this.#start + (this.#taken + 1) * this.#every - performance.now()));
  }

  /** Takes the latest turn that has come, and says when that was. */
  take(): Date {
    this.#taken = Math.floor((performance.now() - this.#start) / this.#every);
    return new Date(this.#began + this.#taken * this.#every);
  }
}
