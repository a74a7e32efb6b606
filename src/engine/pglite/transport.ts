import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { enableWasmOptimization, startThread } from '../../base/threads/thread.js';
import type { Transport } from '../upstream-session.js';
import { unpackImage } from './data-directory.js';

/** Start parameters of the worker. */
export interface PgliteWorkerStart {
  readonly dataDir: string;
  /** `make` creates the data directory, reports `started` and ends. */
  readonly task: 'make' | 'serve';
  /** Memory limit of the engine in bytes. */
  readonly maxMemory: number;
  /** One int32: the number of bytes posted by the worker and not yet consumed by the host. */
  readonly outstanding: SharedArrayBuffer;
}

export type PgliteRequest =
  /** Frontend messages ending in Sync or Query. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array } | { readonly kind: 'close' };

export type PgliteEvent =
  | { readonly kind: 'started' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** The engine's memory, which never shrinks, has grown so much that the engine should be restarted. */
  | { readonly kind: 'grown' }
  /** Backend messages, split anywhere. */
  | { readonly kind: 'data'; readonly bytes: Uint8Array<ArrayBuffer> };

const CLOSE_MS = 10_000;
/** Young generation of the thread in MB; small, since a statement's JavaScript objects are garbage after its answer. */
const YOUNG_MB = 8;

/** Transport to the embedded server in a worker thread. */
export class WorkerTransport implements Transport {
  /** Time in ms to wait before cancelling, which ends the server: about as long as a restart takes. */
  readonly graceMs = 250;
  /** Settles when the worker has ended and released the data directory. */
  readonly exited: Promise<void>;
  /** Called when the engine should be restarted to free memory. */
  onGrown: () => void = () => undefined;

  readonly #worker: Worker;
  readonly #outstanding: Int32Array<SharedArrayBuffer>;
  #receive: ((chunk: Uint8Array) => void) | null = null;
  #paused = false;
  #queue: Uint8Array[] = [];

  private constructor(worker: Worker, outstanding: Int32Array<SharedArrayBuffer>) {
    this.#worker = worker;
    this.#outstanding = outstanding;
    this.exited = new Promise((resolve) => worker.once('exit', () => resolve()));
  }

  /**
   * Starts a server on `dataDir`, which is created if missing. Rejects with an Error that states the reason.
   *
   * @param maxMemory memory limit of the server in bytes
   */
  static async start(dataDir: string, maxMemory: number): Promise<WorkerTransport> {
    enableWasmOptimization();
    // In a separate thread, because creating the directory takes half a gigabyte of memory, freed when the thread ends.
    if (!existsSync(join(dataDir, 'PG_VERSION')) && !unpackImage(dataDir)) {
      const maker = await WorkerTransport.#startWorker(dataDir, 'make', maxMemory);
      maker.destroy();
      await maker.exited;
    }
    return WorkerTransport.#startWorker(dataDir, 'serve', maxMemory);
  }

  static #startWorker(
    dataDir: string,
    task: PgliteWorkerStart['task'],
    maxMemory: number,
  ): Promise<WorkerTransport> {
    const outstanding = new SharedArrayBuffer(4);
    const workerData: PgliteWorkerStart = { dataDir, task, maxMemory, outstanding };
    const file = new URL('./pglite-worker.js', import.meta.url);
    const worker = startThread(file, { maxYoungGenerationSizeMb: YOUNG_MB }, workerData);
    worker.ref();
    const transport = new WorkerTransport(worker, new Int32Array(outstanding));
    return new Promise((resolve, reject) => {
      worker.on('message', (message: PgliteEvent) => {
        if (message.kind === 'started') resolve(transport);
        else if (message.kind === 'data') transport.#onData(message.bytes);
        else if (message.kind === 'grown') transport.onGrown();
        else {
          transport.destroy();
          reject(new Error(`the embedded server did not start: ${message.reason}`));
        }
      });
      transport.exited.then(() => reject(new Error('the embedded server ended while it started')));
    });
  }

  attach(receive: (chunk: Uint8Array) => void, closed: () => void): void {
    this.#receive = receive;
    this.exited.then(closed);
  }

  write(bytes: Uint8Array): boolean {
    this.#post({ kind: 'exec', bytes: new Uint8Array(bytes) }, true); // transfers a copy
    return true;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    while (!this.#paused) {
      const bytes = this.#queue.shift();
      if (bytes === undefined) return;
      this.#consume(bytes);
    }
  }

  /** Terminates the thread, since a running statement cannot be stopped in any other way. */
  async cancel(): Promise<void> {
    this.destroy();
    await this.exited;
  }

  destroy(): void {
    this.#queue = [];
    this.#receive = null;
    void this.#worker.terminate();
  }

  /** Shuts the server down cleanly; terminates it if that takes too long. */
  async shutDown(): Promise<void> {
    const timer = setTimeout(() => this.destroy(), CLOSE_MS);
    this.#post({ kind: 'close' }, false);
    await this.exited;
    clearTimeout(timer);
  }

  #post(message: PgliteRequest, transfer: boolean): void {
    const transferList = transfer && message.kind === 'exec' ? [message.bytes.buffer as ArrayBuffer] : []; // cast: see `write`
    this.#worker.postMessage(message, transferList);
  }

  #onData(bytes: Uint8Array): void {
    if (this.#paused || this.#queue.length > 0) this.#queue.push(bytes);
    else this.#consume(bytes);
  }

  #consume(bytes: Uint8Array): void {
    this.#receive?.(bytes);
    Atomics.sub(this.#outstanding, 0, bytes.length);
    Atomics.notify(this.#outstanding, 0);
  }
}
