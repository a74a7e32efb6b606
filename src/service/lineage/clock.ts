import { setTimeout as sleep } from 'node:timers/promises';

/** Time as the emitter knows it: its own in tests. */
export interface LineageClock {
  /** ms since 1970. */
  now(): number;
  /** Resolves after `ms`, or when `signal` aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A timer holds no more than some 24 days. */
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
