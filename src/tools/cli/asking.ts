import type { QueryBody } from './client.js';

/** One question on its way. */
export interface Asking {
  readonly url: string;
  readonly token: string;
  readonly body: QueryBody;
  /** As it was typed: a refusal may point into it. */
  readonly text: string;
  /** Ends it before its answer. */
  readonly signal?: AbortSignal;
}
