import { queryError } from 'osl-compiler';

/** What a session runs just now, which a cancel of its client, or its `statement_timeout`, stops. */
export class Running {
  readonly #timeoutMs: () => number;
  #current: AbortController | null = null;
  /** A controller that nothing has aborted serves statement after statement. */
  #spare: AbortController | null = null;

  /** `timeoutMs` is asked when a statement begins; 0 is no limit beyond those of the server. */
  constructor(timeoutMs: () => number) {
    this.#timeoutMs = timeoutMs;
  }

  cancel(): void {
    this.#current?.abort(queryError('cancelled', {}));
  }

  async cancellable<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const controller = this.#spare ?? new AbortController();
    this.#spare = null;
    try {
      return await this.while(controller, () => work(controller.signal));
    } finally {
      if (!controller.signal.aborted) this.#spare = controller;
    }
  }

  /** Runs `work` as `cancellable` does, with a `stop` of its own, which may outlive it. */
  async while<T>(stop: AbortController, work: () => Promise<T>): Promise<T> {
    const ms = this.#timeoutMs();
    const clock =
      ms === 0 ? null : setTimeout(() => stop.abort(queryError('timedOut', { seconds: null })), ms);
    this.#current = stop;
    try {
      return await work();
    } finally {
      if (clock !== null) clearTimeout(clock);
      this.#current = null;
    }
  }
}
