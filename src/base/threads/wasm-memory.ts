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
