import { createContext, Script } from 'node:vm';

/** Main-thread time in ms that the work of `FairTurns` may use within one turn of the event loop. */
const TURN_MS = 5;

/**
 * Spreads work that uses milliseconds of the main thread over turns of the event loop, round robin between callers.
 *
 * Many sockets can become readable within one turn. Without this, the statements of all of them would be compiled
 * before anything else is served: 200 new statements held the event loop for half a second.
 */
export class FairTurns {
  #usedMs = 0;
  #due = false;
  /** Callers with waiting work, in the order of their turns. */
  readonly #waiting = new Map<string, Set<() => void>>();

  /**
   * Runs `work` now if the current turn has time left and nothing waits; otherwise when it is the caller's turn.
   *
   * @param work receives true if it had to wait
   */
  run<T>(caller: string, work: (hasWaited: boolean) => T): T | Promise<T> {
    if (this.#waiting.size === 0 && this.#usedMs < TURN_MS) return this.#timed(() => work(false));
    return new Promise((resolve, reject) => {
      const turn = (): void => {
        try {
          resolve(work(true));
        } catch (error) {
          reject(error);
        }
      };
      const own = this.#waiting.get(caller);
      if (own === undefined) this.#waiting.set(caller, new Set([turn]));
      else own.add(turn);
      this.#schedule();
    });
  }

  #timed<T>(work: () => T): T {
    const began = performance.now();
    try {
      return work();
    } finally {
      this.#usedMs += performance.now() - began;
      this.#schedule();
    }
  }

  #schedule(): void {
    if (this.#due) return;
    this.#due = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#due = false;
    this.#usedMs = 0;
    for (const [caller, own] of this.#waiting) {
      this.#waiting.delete(caller);
      const [turn] = own;
      if (turn === undefined) continue;
      own.delete(turn);
      if (own.size > 0) this.#waiting.set(caller, own); // moved to the end, so this loop reaches it again
      this.#timed(turn);
      if (this.#usedMs >= TURN_MS) return;
    }
  }
}

/** Shares the main thread's time among the statements compiled in this process. */
export const compileTurns = new FairTurns();

/** Synchronous work exceeded its time limit and was stopped. */
export class TimeLimitError extends Error {
  override readonly name = 'TimeLimitError';

  constructor(ms: number) {
    super(`it took more than ${ms} ms`);
  }
}

const script = new Script('work()');
const context = createContext({ work: (): void => undefined }) as { work: () => unknown };

/**
 * Runs synchronous `work` and interrupts it after `ms` without running its `finally` blocks, so discard whatever it
 * was modifying. Costs about 40 µs.
 *
 * @throws TimeLimitError, and errors of `work`
 */
export function stopAfter<T>(ms: number, work: () => T): T {
  const outer = context.work;
  context.work = work;
  try {
    return script.runInContext(context, { timeout: ms }) as T;
  } catch (error) {
    // The error comes from another context, so `instanceof Error` is false.
    const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : null;
    throw code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? new TimeLimitError(ms) : error;
  } finally {
    context.work = outer;
  }
}
