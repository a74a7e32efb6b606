export {};

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
