import { setTimeout as sleep } from 'node:timers/promises';
import type { LineageClock } from '../../../src/service/lineage/delivery/delivery.js';

/** A clock that runs as the system's does, and can be put forward. */
export interface ShiftedClock extends LineageClock {
  advance(ms: number): void;
}

export function shiftedClock(): ShiftedClock {
  let shift = 0;
  const now = (): number => Date.now() + shift;
  return {
    now,
    advance: (ms) => {
      shift += ms;
    },
    sleep: async (ms, signal) => {
      const until = now() + ms;
      while (!signal.aborted && now() < until) await sleep(5);
    },
  };
}
