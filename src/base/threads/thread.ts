import { setPriority } from 'node:os';
import { type ResourceLimits, Worker } from 'node:worker_threads';

/**
 * Starts a thread, which keeps no process open. What it throws ends the thread and never the process: `exit` follows, and
 * who waits for an answer listens to `error` too.
 *
 * @param resourceLimits of its memory, MiB
 * @throws Error where the system gives no thread
 */
export function startThread(
  file: URL | string,
  resourceLimits: ResourceLimits,
  workerData?: unknown,
): Worker {
  const worker = new Worker(file, { execArgv: [], resourceLimits, workerData }); // flags such as --eval are not for it
  worker.on('error', () => undefined);
  worker.unref();
  return worker;
}

const PAGE_BYTES = 65_536;

declare global {
  /** The part of the platform's WebAssembly that is used here; the types of Node leave it to those of browsers. */
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
 * Bounds every memory that WebAssembly of this thread makes from now on. An embedded Postgres asks for one that may grow to
 * 2 GiB and never gives anything back; with a smaller one it reports that it is out of memory (53200), and goes on.
 */
export function boundWasmMemory(maxBytes: number): void {
  const Memory = WebAssembly.Memory;
  WebAssembly.Memory = class extends Memory {
    constructor(wanted: WebAssembly.MemoryDescriptor) {
      super({ ...wanted, maximum: Math.floor(maxBytes / PAGE_BYTES) });
    }
  };
}

/** A share of a busy processor that is a third of the gateway's own: what works in a thread may be anybody's long work. */
const NICE = 5;

/** Lowers the priority of this thread alone, which Linux has as a process of its own; elsewhere it would be the gateway's. */
export function yieldToOthers(): void {
  if (process.platform === 'linux') setPriority(0, NICE);
}
