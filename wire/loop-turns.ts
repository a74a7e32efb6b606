/**
 * Spreads the steps of many connections, each taking a fraction of a millisecond, over turns of the event loop.
 *
 * All sockets can become readable in one turn. After a failover, for example, every client of a pool logs in again: a
 * thousand simultaneous logins held the event loop for 150 ms.
 */
export class LoopTurns {
  readonly #steps: number;
  #stepsLeft: number;
  #isScheduled = false;
  readonly #waiting = new Set<() => void>();

  /** @param steps number of steps in one turn of the event loop */
  constructor(steps: number) {
    this.#steps = steps;
    this.#stepsLeft = steps;
  }

  /**
   * Reserves a step in a turn of the event loop. Returns null if the current turn has room; otherwise a promise that
   * resolves in a later turn.
   */
  take(): Promise<void> | null {
    this.#schedule();
    if (this.#stepsLeft > 0 && this.#waiting.size === 0) {
      this.#stepsLeft -= 1;
      return null;
    }
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#stepsLeft = this.#steps;
    for (const resume of this.#waiting) {
      if (this.#stepsLeft === 0) break;
      this.#stepsLeft -= 1;
      this.#waiting.delete(resume);
      resume();
    }
    if (this.#waiting.size > 0) this.#schedule();
  }
}

/**
 * Limits the login steps of all connections of this process per turn of the event loop; `messageTurns` does the same
 * for messages.
 */
export const loginTurns = new LoopTurns(16);
export const messageTurns = new LoopTurns(8);
