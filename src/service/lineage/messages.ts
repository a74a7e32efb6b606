import type { DatasetDescription } from './datasets.js';
import type { EmitterStats } from './emitter.js';

/** What the service and the thread that emits tell each other. */
export type ToThread =
  | {
      readonly kind: 'announce';
      readonly ticket: number;
      readonly version: string;
      readonly datasets: readonly DatasetDescription[];
    }
  | { readonly kind: 'stop' };

export type FromThread =
  | { readonly kind: 'ready' }
  /** It cannot begin. */
  | { readonly kind: 'failed'; readonly reason: string }
  /** The events of an announcement are on disk, or why they are not. */
  | { readonly kind: 'announced'; readonly ticket: number; readonly fault: string | null }
  | { readonly kind: 'warning'; readonly message: string; readonly fields: Readonly<Record<string, unknown>> }
  | { readonly kind: 'stats'; readonly stats: EmitterStats };
