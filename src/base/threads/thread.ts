import { setPriority } from 'node:os';
import { type ResourceLimits, Worker } from 'node:worker_threads';

/**
 * Starts an unreferenced thread. An uncaught error ends the thread, not the process: `error` and `exit` are emitted.
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
  /** The parts of WebAssembly used here; Node's types omit them. */
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
 * Limits every WebAssembly memory created by this thread from now on. An embedded Postgres requests up to 2 GiB and
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

/** About a third of the gateway's share of a busy processor. */
const NICE = 5;

/**
 * Lowers the priority of this thread. Only on Linux, where threads have their own; elsewhere it would affect the
 * process.
 */
export function yieldToOthers(): void {
  if (process.platform === 'linux') setPriority(0, NICE);
}
