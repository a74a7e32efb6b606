import type { Awaitable } from '../../../wire/index.js';

/** Whether a subject may have one more session open. */
export interface SessionCounts {
  /** One more of `subject`; what it gives ends it, once. Null where the subject has as many as it may. */
  open(subject: string): Awaitable<(() => void) | null>;
}

/** How many sessions each subject has open in this process. */
export class OpenSessions implements SessionCounts {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  open(subject: string): (() => void) | null {
    const open = this.#open.get(subject) ?? 0;
    if (open >= this.#most) return null;
    this.#open.set(subject, open + 1);
    let ended = false;
    return () => {
      if (ended) return;
      ended = true;
      const left = (this.#open.get(subject) ?? 0) - 1;
      if (left > 0) this.#open.set(subject, left);
      else this.#open.delete(subject);
    };
  }
}
