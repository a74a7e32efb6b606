/**
 * One thing at a time, callers in turn: who has many waiting gets as many turns as who has one, so that nobody waits
 * for more than one of each other caller's.
 */
export class Turns {
  /** Callers with something waiting, the next one first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #busy = false;

  /** Whether `caller` has as many waiting as it may. */
  isFull(caller: string): boolean {
    return (this.#waiting.get(caller)?.length ?? 0) >= MOST_WAITING;
  }

  async take<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy) await new Promise<void>((turn) => this.#queue(caller, turn));
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#next();
    }
  }

  #queue(caller: string, turn: () => void): void {
    const own = this.#waiting.get(caller);
    if (own === undefined) this.#waiting.set(caller, [turn]);
    else own.push(turn);
  }

  /** Hands the turn on; it stays taken where somebody waits. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) {
      this.#busy = false;
      return;
    }
    const [caller, own] = first;
    this.#waiting.delete(caller);
    const turn = own.shift();
    if (own.length > 0) this.#waiting.set(caller, own);
    turn?.();
  }
}

/** Texts that one caller may have waiting. */
const MOST_WAITING = 32;
