/**
 * Permission for a standby to answer, held by whoever asks. A session passes the same object with each query, so that
 * no answer is older than one that it got from another standby. Times are in ms on the clock of `performance.now()`.
 */
export class StandbyReads {
  #notBefore = Number.NEGATIVE_INFINITY;

  /** Everything that was committed before this time must be in the answer. */
  get notBefore(): number {
    return this.#notBefore;
  }

  /** Raises `notBefore` to `time`; an earlier one changes nothing. */
  advance(time: number): void {
    this.#notBefore = Math.max(this.#notBefore, time);
  }
}
