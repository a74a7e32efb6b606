import { Worker } from 'node:worker_threads';

/** Delay in ms, so that indexing does not compete with the load that filled the segment. */
const WAIT_MS = 1_000;

/**
 * Indexes complete segments in a worker thread, so that the next start need not read them. Optional: without an index,
 * a start reads the segments.
 */
export class SegmentIndexer {
  readonly #dir: string;
  #timer: NodeJS.Timeout | null = null;
  #running: Worker | null = null;
  #again = false;
  #closed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  soon(): void {
    if (this.#closed) return;
    if (this.#running !== null) this.#again = true;
    else this.#timer ??= setTimeout(() => this.#run(), WAIT_MS).unref();
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#running?.terminate();
  }

  #run(): void {
    this.#timer = null;
    const workerData = { dir: this.#dir };
    let thread: Worker;
    try {
      thread = new Worker(new URL('./segment-indexer-thread.js', import.meta.url), { workerData });
    } catch {
      return; // no thread available: indexes are built on demand
    }
    thread.unref();
    this.#running = thread;
    // If the directory is inaccessible, the log itself fails and reports it.
    thread.on('error', () => undefined);
    thread.once('exit', () => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      this.soon();
    });
  }
}
