import { setTimeout as sleep } from 'node:timers/promises';

/** Clock of the emitter; replaced in tests. */
export interface LineageClock {
  /** ms since the epoch. */
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** Timers are limited to about 24 days. */
const LONGEST = 2_000_000_000;

export const systemClock: LineageClock = Object.freeze({
  now: () => Date.now(),
  sleep: async (ms: number, signal: AbortSignal) => {
    try {
      await sleep(Math.min(ms, LONGEST), undefined, { signal });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
});
