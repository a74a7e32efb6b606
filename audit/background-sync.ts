/** Longest time that a written record may wait for its sync, ms. */
const SYNC_WITHIN_MS = 50;

/** Delay from the first unsynced record to the start of its sync, ms. The rest of `SYNC_WITHIN_MS` is for the sync. */
const SYNC_AFTER_MS = 20;

/**
 * Syncs records some milliseconds after they are written, one sync at a time. If a record has waited longer than
 * `SYNC_WITHIN_MS`, the sync is `overdue`, and the caller must await `settled` before writing further records.
 */
export class BackgroundSync {
  readonly #sync: () => Promise<void>;
  readonly #written: () => number;
  readonly #failed: (error: unknown) => void;
  #durable: number;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  /**
   * Time (`performance.now`) at which the oldest record not covered by a completed sync was written, or an earlier
   * bound; null if every record is synced.
   */
  #oldest: number | null = null;
  #stopped = false;

  /** @param written returns the number of written records */
  constructor(sync: () => Promise<void>, written: () => number, failed: (error: unknown) => void) {
    this.#sync = sync;
    this.#written = written;
    this.#failed = failed;
    this.#durable = written();
  }

  /** Number of records that are on disk. */
  get durable(): number {
    return this.#durable;
  }

  get overdue(): boolean {
    return this.#oldest !== null && performance.now() - this.#oldest > SYNC_WITHIN_MS;
  }

  /** Schedules a sync. Must be called after records have been written. */
  wrote(): void {
    this.#oldest ??= performance.now();
    if (this.#running === null) this.#timer ??= setTimeout(() => void this.#begin(), SYNC_AFTER_MS);
  }

  /** Resolves when every record written so far is on disk. @throws the error of the sync */
  async settled(): Promise<void> {
    const written = this.#written();
    while (this.#durable < written) await (this.#running ?? this.#begin());
  }

  /** Prevents further syncs and waits for the running one. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#clear();
    await this.#running?.catch(() => undefined);
  }

  #begin(): Promise<void> {
    this.#clear();
    this.#running = this.#run();
    this.#running.catch(this.#failed);
    return this.#running;
  }

  async #run(): Promise<void> {
    const [written, began] = [this.#written(), performance.now()];
    await this.#sync();
    this.#durable = written;
    this.#running = null;
    this.#oldest = null;
    if (this.#written() === written || this.#stopped) return;
    this.wrote();
    // Records written during this sync are no older than its start.
    this.#oldest = began;
  }

  #clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
