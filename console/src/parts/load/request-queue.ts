interface WaitingRequest {
  readonly begin: () => void;
  readonly signal: AbortSignal;
}

/** Runs requests in the order in which they arrive, at most `most` at a time. */
export class RequestQueue {
  readonly #most: number;
  readonly #waiting: WaitingRequest[] = [];
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Runs `request` once its turn has come. A request that has begun is always finished, since it is recorded anyway.
   *
   * @throws DOMException `AbortError` if `signal` aborts before the request has begun; whatever `request` throws
   */
  run<T>(request: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const drop = (): void => reject(signal.reason);
      const begin = (): void => {
        signal.removeEventListener('abort', drop);
        this.#running += 1;
        request()
          .then(resolve, reject)
          .finally(() => {
            this.#running -= 1;
            this.#next();
          });
      };
      signal.addEventListener('abort', drop, { once: true });
      this.#waiting.push({ begin, signal });
      this.#next();
    });
  }

  #next(): void {
    while (this.#running < this.#most) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      if (!next.signal.aborted) next.begin();
    }
  }
}
