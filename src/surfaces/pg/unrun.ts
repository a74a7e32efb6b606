/** A statement that was prepared and has not run yet. */
export interface Prepared {
  /** Records that it was prepared, and counts it where preparing did not. */
  record(): Promise<void>;
}

/**
 * What was prepared last, while nothing is on record of it. Drivers prepare and run in one go, and that is one
 * question with one record: of its run. A statement that has not run by the end of its series of messages, or when the
 * next one is prepared, gets a record of its own.
 */
export class Unrun {
  #last: Prepared | null = null;

  get isHeld(): boolean {
    return this.#last !== null;
  }

  hold(prepared: Prepared): void {
    this.#last = prepared;
  }

  /** Lets go of what runs now: its run is what is recorded. False where it is on record already. */
  release(prepared: Prepared): boolean {
    if (this.#last !== prepared) return false;
    this.#last = null;
    return true;
  }

  /** Records what is held; undefined where there is nothing. */
  record(): Promise<void> | undefined {
    const last = this.#last;
    this.#last = null;
    return last?.record();
  }
}
