/**
 * Places that all questions share, callers in turn: who has many waiting gets as many turns as who has one. A place is
 * waited for no longer than until `signal` aborts.
 */
export class Slots {
  #free: number;
  /** Callers with something waiting, each with one at least, the next one first. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(places: number) {
    this.#free = Math.max(1, places);
  }

  /** Throws what `signal` aborts with. */
  async take<T>(caller: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(caller, signal);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(caller: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const own = this.#waiting.get(caller) ?? new Set();
      this.#waiting.set(caller, own);
      const leave = (): void => {
        own.delete(turn);
        if (own.size === 0 && this.#waiting.get(caller) === own) this.#waiting.delete(caller);
        reject(signal.reason);
      };
      const turn = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      own.add(turn);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  /** Hands a place on; it stays taken where somebody waits. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#free++;
      return;
    }
    const [caller, own] = first;
    this.#waiting.delete(caller);
    const [turn] = own;
    if (turn !== undefined) own.delete(turn);
    if (own.size > 0) this.#waiting.set(caller, own);
    turn?.();
  }
}
