import type { OverlapUpdate } from './decide.js';
import type { OverlapThread } from './overlap-thread.js';

/** The histories of answers, as bytes under opaque keys. */
export interface OverlapStore {
  /** Returns the stored histories, in the order of `keys`; null where there is none. */
  read(keys: readonly string[]): Promise<readonly (Buffer | null)[]>;
  /** Runs `work` on the stored histories, and stores what it returns, while nobody else changes them. */
  update<T>(
    keys: readonly string[],
    work: (stored: readonly (Buffer | null)[]) => Promise<OverlapUpdate<T>>,
  ): Promise<T>;
  /** Compares answers with the histories. */
  readonly thread: OverlapThread;
  close(): Promise<void>;
}
