/** The histories of answers, as bytes under opaque keys. */
export interface OverlapStore {
  /** Returns the stored histories, in the order of `keys`; null where there is none. */
  read(keys: readonly string[]): Promise<readonly (Buffer | null)[]>;
  /** Runs `work` on the stored histories, and stores what it returns, while nobody else changes them. */
  update<T>(
    keys: readonly string[],
    work: (stored: readonly (Buffer | null)[]) => Promise<OverlapUpdate<T>>,
  ): Promise<T>;
  close(): Promise<void>;
}

export interface OverlapUpdate<T> {
  readonly result: T;
  readonly changed: readonly ChangedHistory[];
}

export interface ChangedHistory {
  readonly key: string;
  readonly bytes: Buffer;
  /** In ms since the epoch. */
  readonly endsAt: number;
}
