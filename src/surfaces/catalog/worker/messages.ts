/** What the host gives a catalog worker when it starts it. */
export interface WorkerStart {
  /** All workers share it, and its code. */
  readonly engine: WebAssembly.Module;
  /** The file of a base image to boot from; null to make one. */
  readonly image: string | null;
  /** Run once after the boot, before any caller. */
  readonly scripts: readonly string[];
  /** Bytes that the engine's memory may grow to. */
  readonly maxMemory: number;
}

export type ToWorker =
  /** Frontend messages that end in Sync or Query. The answer may have at most `maxBytes`. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array; readonly maxBytes: number };

export type FromWorker =
  /** Ready; with the image where one was to be made. */
  | { readonly kind: 'started'; readonly image: Uint8Array<ArrayBuffer> | null }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Everything that the engine answered. `memory` is what it has grown to, in bytes. */
  | { readonly kind: 'done'; readonly bytes: Uint8Array<ArrayBuffer>; readonly memory: number }
  /** The answer is larger than allowed; nothing more comes. */
  | { readonly kind: 'overflow' }
  /** The engine trapped: whatever state it is in, it is not to be used again. */
  | { readonly kind: 'broken'; readonly reason: string };
