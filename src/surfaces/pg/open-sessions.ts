/** How many sessions each subject has open, and whether it may have one more. */
export class OpenSessions {
  readonly #most: number;
  readonly #open = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** One more of `subject`; what it gives ends it, once. Null where the subject has as many as it may. */
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
