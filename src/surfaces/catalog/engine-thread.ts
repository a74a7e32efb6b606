import type { Worker } from 'node:worker_threads';
import { startThread } from '../../base/threads/thread.js';
import type { FromWorker, ToWorker, WorkerStart } from './worker/messages.js';

/** Why an engine ended in the middle of its work. */
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

export interface Executed {
  readonly bytes: Uint8Array;
  /** Bytes that the engine's memory has grown to. */
  readonly memory: number;
}

interface Pending {
  readonly done: (executed: Executed) => void;
  readonly ended: (error: EngineEnded) => void;
}

/** One embedded engine in a thread of its own. Nothing stops a statement but the end of the thread. */
export class EngineThread {
  /** Settles once the thread is gone. */
  readonly exited: Promise<void>;
  readonly #worker: Worker;
  #pending: Pending | null = null;
  #alive = true;

  private constructor(worker: Worker) {
    this.#worker = worker;
    this.exited = new Promise((resolve) => worker.once('exit', () => resolve()));
    this.exited.then(() => this.end('broken'));
  }

  /** Boots an engine; gives the image too, where one was to be made. Rejects with an Error that says why not. */
  static start(
    data: WorkerStart,
    deadlineMs: number,
  ): Promise<{ thread: EngineThread; image: Uint8Array | null }> {
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
      worker.on('message', (message: FromWorker) => {
        clearTimeout(late);
        if (message.kind === 'started') resolve({ thread, image: message.image });
        else if (message.kind === 'failed') fail(message.reason);
        else thread.#finish(message);
      });
      thread.exited.then(() => fail('its thread ended'));
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Runs frontend messages to their end. One call at a time. Rejects with EngineEnded; the thread is gone then. */
  async exec(bytes: Uint8Array, limits: ExecLimits): Promise<Executed> {
    if (!this.#alive) throw new EngineEnded('broken');
    const late = setTimeout(() => this.end('deadline'), limits.deadlineMs);
    const cancel = (): void => this.end('cancelled');
    limits.signal?.addEventListener('abort', cancel, { once: true });
    this.#worker.ref();
    try {
      return await new Promise((done, ended) => {
        this.#pending = { done, ended };
        const message: ToWorker = { kind: 'exec', bytes: new Uint8Array(bytes), maxBytes: limits.maxBytes };
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

  #finish(message: Exclude<FromWorker, { kind: 'started' | 'failed' }>): void {
    if (message.kind === 'done') this.#pending?.done({ bytes: message.bytes, memory: message.memory });
    else if (message.kind === 'overflow') this.end('overflow');
    else this.end('broken', message.reason);
  }
}
