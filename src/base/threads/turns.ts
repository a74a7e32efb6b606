/**
 * So many things at a time, one unless told, callers in turn: who has many waiting gets as many turns as who has one,
 * so that nobody waits for more than one of each other caller's.
 */
export class FairSlots {
  #free: number;
  /** Callers with something waiting, each with one at least, the next one first. */
  readonly #waiting = new Map<string, Set<() => void>>();

  constructor(places = 1) {
    this.#free = Math.max(1, places);
  }

  /** True if `caller` has as many waiting as it may, where its asker bounds that. */
  isFull(caller: string): boolean {
    return (this.#waiting.get(caller)?.size ?? 0) >= MOST_WAITING;
  }

  /**
   * Runs `work` in turn and gives its result.
   *
   * @param signal until when a turn is waited for; what it aborts with is thrown. Work that has begun is not its matter
   */
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

/** Things that one caller may have waiting. */
const MOST_WAITING = 32;
