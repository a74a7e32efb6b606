/** A running query that may take too long. */
interface TimedQuestion {
  /** @param now on the clock of `performance.now()` */
  stopIfLate(now: number): void;
}

/** Interval of timeout checks in ms. Queries may overrun their timeout by that much. */
const EVERY_MS = 100;

/** A single timer that enforces the timeouts of all running queries. */
export class Sweep {
  readonly #open = new Set<TimedQuestion>();
  #timer: NodeJS.Timeout | null = null;

  add(one: TimedQuestion): void {
    this.#open.add(one);
    this.#timer ??= setInterval(() => this.#look(), EVERY_MS).unref();
  }

  delete(one: TimedQuestion): void {
    this.#open.delete(one);
  }

  #look(): void {
    if (this.#open.size === 0 && this.#timer !== null) {
      clearInterval(this.#timer);
      this.#timer = null;
    }
    const now = performance.now();
    for (const one of [...this.#open]) one.stopIfLate(now);
  }
}
