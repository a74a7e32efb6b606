import { fc } from '../../support/fast-check.js';

/** Where random choices come from: fast-check, which shrinks them, or a seed. */
export interface Dice {
  /** An integer from 0 to `max`. */
  readonly upTo: (max: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly of: <T>(items: readonly T[]) => T;
  /** Those of `items` that a chance of `probability` each leaves. */
  readonly some: <T>(items: readonly T[], probability: number) => readonly T[];
  readonly times: <T>(min: number, max: number, make: (index: number) => T) => readonly T[];
}

function diceOver(upTo: (max: number) => number): Dice {
  const chance = (probability: number): boolean => upTo(999) >= 1000 - probability * 1000;
  return {
    upTo,
    chance,
    of: (items) => {
      const item = items[upTo(items.length - 1)];
      if (item === undefined) throw new Error('nothing to choose from');
      return item;
    },
    some: (items, probability) => items.filter(() => chance(probability)),
    times: (min, max, make) => Array.from({ length: min + upTo(max - min) }, (_, i) => make(i)),
  };
}

/** Choices that fast-check makes and shrinks towards 0: no chance taken, the first of each list. */
export const diceArbitrary: fc.Arbitrary<Dice> = fc
  .gen()
  .map((g) => diceOver((max) => (max <= 0 ? 0 : g(evenly, max))));

function evenly(max: number): fc.Arbitrary<number> {
  return fc.noBias(fc.nat({ max }));
}

/** Choices that follow from `seed` alone (mulberry32). */
export function diceFrom(seed: number): Dice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  return diceOver((max) => Math.floor(next() * (max + 1)));
}
