import { Worker } from 'node:worker_threads';

/** Delay in ms before the previous segment is sealed, so that sealing does not compete with the load that filled it. */
const WAIT_MS = 1_000;

/**
 * Seals complete segments in a thread, one run after another, so that the next start need not read them. It is no part
 * of what the log promises: a seal that is missing costs a start the time to read its segment.
 */
export class Sealer {
  readonly #dir: string;
  #timer: NodeJS.Timeout | null = null;
  #running: Worker | null = null;
  #again = false;
  #closed = false;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /** A segment is complete. */
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
      thread = new Worker(new URL('./sealer-thread.js', import.meta.url), { workerData });
    } catch {
      return; // the system gives no thread now: who needs a seal makes it
    }
    thread.unref();
    this.#running = thread;
    // A directory that cannot be read or written fails the log itself, which says so.
    thread.on('error', () => undefined);
    thread.once('exit', () => {
      this.#running = null;
      if (!this.#again) return;
      this.#again = false;
      this.soon();
    });
  }
}
