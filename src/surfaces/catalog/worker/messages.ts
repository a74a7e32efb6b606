import type { SharedImage } from './image-files.js';

/** Input of a catalog worker. */
export interface CatalogWorkerStart {
  /** Compiled engine, shared by all workers. */
  readonly engine: WebAssembly.Module;
  readonly task: WorkerTask;
  /** Maximum memory of the engine in bytes. */
  readonly maxMemory: number;
}

/** `spillMib` limits temporary files of statements, which are in memory. */
export type WorkerTask =
  /** Make a base image by running these scripts. */
  | { readonly kind: 'make'; readonly scripts: readonly string[] }
  /** Boot from a base image file and fill it with contents in the format of `ContentsWriter`. */
  | {
      readonly kind: 'fill';
      readonly image: string;
      readonly parts: readonly Uint8Array[];
      readonly spillMib: number;
    }
  /** Boot from the image of a filled engine. */
  | { readonly kind: 'resume'; readonly image: SharedImage; readonly spillMib: number };

export type ToCatalogWorker =
  /** Frontend messages ending in Sync or Query. `maxBytes` limits the reply. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array; readonly maxBytes: number };

export type FromCatalogWorker =
  | { readonly kind: 'made'; readonly image: Uint8Array<ArrayBuffer> }
  /** Ready; `image` is for later engines. */
  | { readonly kind: 'started'; readonly image: SharedImage }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Complete reply; `memory` is the size of the engine's memory in bytes. */
  | { readonly kind: 'done'; readonly bytes: Uint8Array<ArrayBuffer>; readonly memory: number }
  /** The reply exceeds `maxBytes`. */
  | { readonly kind: 'overflow' }
  /** The engine trapped and must not be used again. */
  | { readonly kind: 'broken'; readonly reason: string };
