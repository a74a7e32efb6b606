import type { Worker } from 'node:worker_threads';
import { startThread } from './thread.js';

/** Idle time in ms after which the thread is ended, to free its memory. */
const IDLE_MS = 60_000;

/**
 * A thread that is started when it is needed, ended when it has been idle, and replaced after a failure.
 *
 * INVARIANT: it is used by one caller at a time, which the owner arranges.
 */
export class IdleThread {
  readonly #file: URL;
  readonly #memoryMb: number;
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;

  /** @param memoryMb maximum size of the heap of old objects, in MiB */
  constructor(file: URL, memoryMb: number) {
    this.#file = file;
    this.#memoryMb = memoryMb;
  }

  /** Runs `work` with the thread, which is ended if that fails. */
  async use<T>(work: (worker: Worker) => Promise<T>): Promise<T> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    this.#worker ??= startThread(this.#file, { maxOldGenerationSizeMb: this.#memoryMb });
    try {
      return await work(this.#worker);
    } catch (error) {
      await this.end();
      throw error;
    } finally {
      this.#idle = setTimeout(() => void this.end(), IDLE_MS).unref();
    }
  }

  async end(): Promise<void> {
    if (this.#idle !== null) clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}
