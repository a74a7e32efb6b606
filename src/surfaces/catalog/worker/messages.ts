import type { SharedImage } from './image-files.js';

/** What the host gives a catalog worker when it starts it. */
export interface CatalogWorkerStart {
  /** All workers share it, and its code. */
  readonly engine: WebAssembly.Module;
  readonly task: WorkerTask;
  /** Bytes that the engine's memory may grow to. */
  readonly maxMemory: number;
}

/** `spillMib` bounds what statements put into temporary files, which are memory here. */
export type WorkerTask =
  /** Makes a base image by these scripts. */
  | { readonly kind: 'make'; readonly scripts: readonly string[] }
  /** Boots from the file of a base image, and is filled with contents as `ContentsWriter` writes them. */
  | {
      readonly kind: 'fill';
      readonly image: string;
      readonly parts: readonly Uint8Array[];
      readonly spillMib: number;
    }
  /** Boots from the image of an engine that was filled. */
  | { readonly kind: 'resume'; readonly image: SharedImage; readonly spillMib: number };

export type ToCatalogWorker =
  /** Frontend messages that end in Sync or Query. The answer may have at most `maxBytes`. */
  { readonly kind: 'exec'; readonly bytes: Uint8Array; readonly maxBytes: number };

export type FromCatalogWorker =
  /** The base image that was to be made. */
  | { readonly kind: 'made'; readonly image: Uint8Array<ArrayBuffer> }
  /** Ready; `image` is what it was filled with, for engines after it. */
  | { readonly kind: 'started'; readonly image: SharedImage }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Everything that the engine answered. `memory` is what it has grown to, in bytes. */
  | { readonly kind: 'done'; readonly bytes: Uint8Array<ArrayBuffer>; readonly memory: number }
  /** The answer is larger than allowed; nothing more comes. */
  | { readonly kind: 'overflow' }
  /** The engine trapped: whatever state it is in, it is not to be used again. */
  | { readonly kind: 'broken'; readonly reason: string };
