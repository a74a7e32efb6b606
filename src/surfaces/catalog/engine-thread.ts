import type { Worker } from 'node:worker_threads';
import { startThread } from '../../base/threads/thread.js';
import type { CatalogWorkerStart, FromCatalogWorker, ToCatalogWorker } from './worker/catalog-worker.js';
import type { SharedImage } from './worker/image-files.js';

export type EndReason = 'deadline' | 'cancelled' | 'overflow' | 'broken';

export class EngineEnded extends Error {
  override readonly name = 'EngineEnded';
  readonly reason: EndReason;

  constructor(reason: EndReason, detail: string = reason) {
    super(`the catalog engine ended: ${detail}`);
    this.reason = reason;
  }
}

export interface ExecLimits {
  readonly deadlineMs: number;
  readonly maxBytes: number;
  readonly signal: AbortSignal | null;
}

export interface EngineResult {
  readonly bytes: Uint8Array;
  readonly memory: number;
}

export interface StartedEngine {
  readonly thread: EngineThread;
  /** The image that the engine booted from, reused if it has to be restarted. */
  readonly image: SharedImage;
}

interface PendingExecution {
  readonly done: (executed: EngineResult) => void;
  readonly ended: (error: EngineEnded) => void;
}

/** An embedded engine in its own thread. A running statement can only be stopped by terminating the thread. */
export class EngineThread {
  readonly exited: Promise<void>;
  readonly #worker: Worker;
  #pending: PendingExecution | null = null;
  #alive = true;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.exited = new Promise((resolve) => worker.once('exit', () => resolve()));
    this.exited.then(() => this.end('broken'));
  }

  static start(data: CatalogWorkerStart, deadlineMs: number): Promise<StartedEngine> {
    return EngineThread.#begin(data, deadlineMs, (message, thread) =>
      message.kind === 'started' ? { thread, image: message.image } : null,
    );
  }

  static make(data: CatalogWorkerStart, deadlineMs: number): Promise<Uint8Array> {
    return EngineThread.#begin(data, deadlineMs, (message, thread) => {
      if (message.kind !== 'made') return null;
      thread.end('cancelled');
      return message.image;
    });
  }

  static #begin<T>(
    data: CatalogWorkerStart,
    deadlineMs: number,
    read: (message: FromCatalogWorker, thread: EngineThread) => T | null,
  ): Promise<T> {
    const file = new URL('./worker/catalog-worker.js', import.meta.url);
    const limits = { maxOldGenerationSizeMb: 192, maxYoungGenerationSizeMb: 8 };
    const worker = startThread(file, limits, data);
    const thread = new EngineThread(worker);
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        thread.end('broken');
        reject(new Error(`the catalog engine did not start: ${reason}`));
      };
      const late = setTimeout(fail, deadlineMs, 'it took too long');
      worker.on('message', (message: FromCatalogWorker) => {
        clearTimeout(late);
        const begun = read(message, thread);
        if (begun !== null) resolve(begun);
        else if (message.kind === 'failed') fail(message.reason);
        else thread.#finish(message);
      });
      thread.exited.then(() => fail('its thread ended'));
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /**
   * Sends frontend messages and returns the reply; only one call may be active at a time. Rejects with EngineEnded if
   * the thread has terminated.
   */
  async exec(bytes: Uint8Array, limits: ExecLimits): Promise<EngineResult> {
    if (!this.#alive) throw new EngineEnded('broken');
    const late = setTimeout(() => this.end('deadline'), limits.deadlineMs);
    const cancel = (): void => this.end('cancelled');
    limits.signal?.addEventListener('abort', cancel, { once: true });
    this.#worker.ref();
    try {
      return await new Promise((done, ended) => {
        this.#pending = { done, ended };
        const message: ToCatalogWorker = {
          kind: 'exec',
          bytes: new Uint8Array(bytes),
          maxBytes: limits.maxBytes,
        };
        this.#worker.postMessage(message);
      });
    } finally {
      this.#pending = null;
      this.#worker.unref();
      clearTimeout(late);
      limits.signal?.removeEventListener('abort', cancel);
    }
  }

  end(reason: EndReason, detail?: string): void {
    if (this.#alive) {
      this.#alive = false;
      void this.#worker.terminate();
    }
    this.#pending?.ended(new EngineEnded(reason, detail));
  }

  #finish(message: FromCatalogWorker): void {
    if (message.kind === 'done') this.#pending?.done({ bytes: message.bytes, memory: message.memory });
    else if (message.kind === 'overflow') this.end('overflow');
    else this.end('broken', message.kind === 'broken' ? message.reason : `an unexpected ${message.kind}`);
  }
}
