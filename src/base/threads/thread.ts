import { setPriority } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { type ResourceLimits, Worker } from 'node:worker_threads';

/**
 * Starts an unreferenced thread. An uncaught error ends only the thread, not the process; `error` and `exit` are
 * emitted.
 *
 * @param resourceLimits in MiB
 * @throws Error if the system cannot start a thread
 */
export function startThread(
  file: URL | string,
  resourceLimits: ResourceLimits,
  workerData?: unknown,
): Worker {
  const worker = new Worker(file, { execArgv: [], resourceLimits, workerData }); // does not inherit flags such as --eval
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}

const PAGE_BYTES = 65_536;

declare global {
  /** The parts of WebAssembly used here, which Node's types omit. */
  namespace WebAssembly {
    class Module {
      private readonly opaque: true;
    }
    interface MemoryDescriptor {
      readonly initial: number;
      readonly maximum?: number;
    }
    class Memory {
      constructor(descriptor: MemoryDescriptor);
    }
    function compile(bytes: Uint8Array): Promise<Module>;
  }
}

/**
 * Limits every WebAssembly memory that this thread creates from now on. An embedded Postgres requests up to 2 GiB and
 * never frees it; with a smaller limit it reports out of memory (53200) and continues.
 */
export function boundWasmMemory(maxBytes: number): void {
  const Memory = WebAssembly.Memory;
  WebAssembly.Memory = class extends Memory {
    constructor(wanted: WebAssembly.MemoryDescriptor) {
      super({ ...wanted, maximum: Math.floor(maxBytes / PAGE_BYTES) });
    }
  };
}

/**
 * Amount of work, in V8's unit, after which V8 optimizes a WebAssembly function. This value corresponds to a few
 * seconds of execution.
 */
const TIERING_BUDGET = 1_000_000_000;

let isDisabled = false;

/**
 * Keeps V8 from optimizing WebAssembly in this process until an embedded database starts. Optimizing the largest
 * function of the parser (100 KB) takes Node 24 up to 3.6 s of processor time and 610 MB, and saves 15 µs a parse.
 */
export function disableWasmOptimization(): void {
  isDisabled = true;
  setFlagsFromString('--no-wasm-dynamic-tiering');
  setFlagsFromString('--no-wasm-tier-up');
}

/**
 * Enables the optimization of WebAssembly again if it was disabled: the scans of an embedded database are two to four
 * times as slow without it. A process that never disabled it keeps the flags that it was started with.
 */
export function enableWasmOptimization(): void {
  if (!isDisabled) return;
  isDisabled = false;
  setFlagsFromString('--wasm-tier-up');
  setFlagsFromString('--wasm-dynamic-tiering');
  deferWasmOptimization();
}

/**
 * Delays the optimization of WebAssembly modules that this process compiles from now on. Otherwise V8 would optimize
 * the largest functions of an embedded Postgres during its startup, which costs a second of processor time and 100 MB.
 *
 * INVARIANT: modules compiled earlier, such as the parser, keep their own tiering budget.
 */
export function deferWasmOptimization(): void {
  setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
}

/** Nice value that gives a thread about a third of the main thread's share of a busy processor. */
const NICE = 5;

/**
 * Lowers the priority of this thread. Only done on Linux, where priorities are per thread; elsewhere it would affect
 * the whole process.
 */
export function yieldToOthers(): void {
  if (process.platform === 'linux') setPriority(0, NICE);
}

/** Reason why a thread did not answer: timeout, out of memory, or another failure. */
export type ThreadFailure = 'late' | 'memory' | 'failed';

/**
 * Waits for the first message that `read` maps to a value. Rejects with any error thrown by `read`, or with the error
 * from `ended` on timeout or if the thread ends. The caller must terminate a thread that timed out.
 */
export function answerOf<Message, T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: Message) => { readonly value: T } | null,
  ended: (why: ThreadFailure, detail: string) => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(late);
      worker.off('message', hear);
      worker.off('error', broken);
      worker.off('exit', gone);
      worker.unref();
      settle();
    };
    const hear = (message: Message): void => {
      try {
        const found = read(message);
        if (found !== null) end(() => resolve(found.value));
      } catch (error) {
        end(() => reject(error));
      }
    };
    const broken = (error: Error): void => {
      const memory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      end(() => reject(ended(memory ? 'memory' : 'failed', error.message)));
    };
    const gone = (): void => end(() => reject(ended('failed', 'it is gone')));
    const late = setTimeout(
      () => end(() => reject(ended('late', `no answer in ${deadlineMs} ms`))),
      deadlineMs,
    );
    worker.on('message', hear);
    worker.once('error', broken);
    worker.once('exit', gone);
    worker.ref();
    if (worker.threadId < 0) gone(); // it ended before it was asked
  });
}

/** Idle time in ms after which the thread is ended, to free its memory. */
const IDLE_MS = 60_000;

/**
 * A thread that is started when it is needed, ended after `IDLE_MS` without use, and replaced after a failure.
 *
 * INVARIANT: the owner ensures that only one caller uses it at a time.
 */
export class IdleThread {
  readonly #file: URL;
  readonly #memoryMb: number;
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;

  /** @param memoryMb maximum size of the old-generation heap, in MiB */
  constructor(file: URL, memoryMb: number) {
    this.#file = file;
    this.#memoryMb = memoryMb;
  }

  /** Runs `work` with the thread. If `work` fails, the thread is ended. */
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
