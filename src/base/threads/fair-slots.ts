/**
 * Runs up to `places` tasks at a time, round robin between callers: a caller waits for at most one task of each other
 * caller.
 */
export class FairSlots {
  #free: number;
  /** Callers with waiting tasks, in the order of their turns. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(places = 1) {
    this.#free = Math.max(1, places);
  }

  /** True if `caller` already has the maximum number of tasks waiting. */
  isFull(caller: string): boolean {
    return (this.#waiting.get(caller)?.size ?? 0) >= MOST_WAITING;
  }

  /** Runs `work` when its turn comes. @param signal cancels the wait, but not running `work`; its reason is thrown */
  async take<T>(caller: string, work: () => Promise<T>, signal: AbortSignal | null = null): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(caller, signal);
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #turn(caller: string, signal: AbortSignal | null): Promise<void> {
    return new Promise((resolve, reject) => {
      const own = this.#waiting.get(caller) ?? new Set();
      this.#waiting.set(caller, own);
      const leave = (): void => {
        own.delete(turn);
        if (own.size === 0 && this.#waiting.get(caller) === own) this.#waiting.delete(caller);
        reject(signal?.reason);
      };
      const turn = (): void => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      own.add(turn);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }

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

const MOST_WAITING = 32;
