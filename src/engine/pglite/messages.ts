/** What the host gives the worker when it starts it. */
export interface PgliteWorkerStart {
  readonly dataDir: string;
  /** `make`: makes the data directory, says `started`, and has nothing more to do. */
  readonly task: 'make' | 'serve';
  /** Bytes that the engine's own memory may grow to. */
  readonly maxMemory: number;
  /** One int32: bytes posted by the worker and not yet consumed by the host. */
  readonly outstanding: SharedArrayBuffer;
}

export type PgliteRequest =
  /** Frontend messages that end in Sync or Query. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array } | { readonly kind: 'close' };

export type PgliteEvent =
  | { readonly kind: 'started' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** The engine's memory, which never shrinks, has grown so far that the engine should be begun anew. */
  | { readonly kind: 'grown' }
  /** Backend messages, cut anywhere. */
  | { readonly kind: 'data'; readonly bytes: Uint8Array<ArrayBuffer> };
