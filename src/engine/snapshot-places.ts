import { queryError } from 'osl-compiler';

/**
 * Limits the number of sessions that open transactions may hold, and allows half as many per subject, so that idle
 * clients do not starve others.
 */
export class SnapshotPlaces {
  readonly #most: number;
  readonly #taken = new Map<string | null, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @throws QueryError `overloaded` */
  take(subject: string | null): void {
    const taken = this.#taken.get(subject) ?? 0;
    if (this.#all >= this.#most || taken >= Math.ceil(this.#most / 2))
      throw queryError('overloaded', { retryAfterSeconds: 5 });
    this.#taken.set(subject, taken + 1);
    this.#all += 1;
  }

  free(subject: string | null): void {
    const left = (this.#taken.get(subject) ?? 0) - 1;
    if (left > 0) this.#taken.set(subject, left);
    else this.#taken.delete(subject);
    this.#all -= 1;
  }
}
