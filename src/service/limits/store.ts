import type { Charge, Count } from '../../../policy/index.js';

/** Some uses of a limit of a second; none: nothing is left until its window ends. */
export interface Portion {
  readonly tokens: number;
  readonly endsInMs: number;
}

/**
 * Where gateways keep their counts together. Keys say nothing of whom they count. Every method rejects where the store
 * does not answer in time.
 */
export interface CountStore {
  /** Takes a part of what is left of `most` in the second of `key`, which begins with the first that asks. */
  lease(key: string, most: number): Promise<Portion>;
  /** Adds to counts; gives how each stands, in their order. */
  add(charges: readonly Charge[]): Promise<readonly Count[]>;
  /** Says that process `id` is there. Gives how many are, that one among them. */
  here(id: string): Promise<number>;
  close(): Promise<void>;
}

/** Of what is left one process takes such a part at a time that several others find some too. */
export const PART = 8;
/** The windows that are lent in portions, ms. */
export const SECOND_MS = 1_000;
/** Who has said nothing for so long has gone, ms. */
export const GONE_MS = 10_000;
