/** The limiter's own window: so no window has more than twice the runs that a limit allows, and compilations at most as many. */
const GOOD_FOR_MS = 1_000;

/** What preparing a statement has paid for, beside itself: its first run, if that comes within the same second. */
export class Payment {
  #until = performance.now() + GOOD_FOR_MS;

  /** True once. */
  take(): boolean {
    const good = performance.now() <= this.#until;
    this.#until = 0;
    return good;
  }
}
