import type { ServiceLog } from '../../../base/log.js';
import { messageOf } from '../../../base/thrown.js';
import { IndexSignals } from '../../../service/index-signals.js';

export interface Watch {
  /** Brings the stores of these facets up to date; of all that are watched where none is named. */
  readonly round: (names: readonly string[]) => Promise<void>;
  /** Facets that are watched. */
  readonly names: readonly string[];
  /** Databases that tell of changes. */
  readonly urls: readonly string[];
  readonly everySeconds: number;
  readonly signal: AbortSignal;
  readonly log: ServiceLog;
}

/**
 * Rounds until `signal` ends them: at once, then after each interval, and where a database tells of a change. What fails
 * after the first round is told, and tried again.
 */
export async function watchIndex({ round, names, urls, everySeconds, signal, log }: Watch): Promise<void> {
  const signals = new IndexSignals(urls, log);
  try {
    await signals.listen();
    await round([]);
    while (!signal.aborted) {
      const heard = await signals.next(everySeconds * 1_000, signal);
      if (signal.aborted) return;
      const isAll = heard.length === 0 || heard.includes('');
      const known = heard.filter((name) => names.includes(name));
      if (!isAll && known.length === 0) continue;
      await signals.listen();
      await round(isAll ? [] : known).catch((error: unknown) => {
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
