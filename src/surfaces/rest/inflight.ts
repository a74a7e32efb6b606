import type { ServerResponse } from 'node:http';
import { QueryError, queryError } from 'osl-compiler';
import type { RequestCall } from '../../ask/index.js';

/** What an execution is of, for who runs the server. */
export interface About {
  readonly call: RequestCall;
  readonly action: string;
  /** What is asked; null where that is no text. */
  readonly text: string | null;
}

/** An execution that is under way. */
export interface RunningAbout extends About {
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** The executions under way. Each ends when its client leaves, and all of them when the drain's time is over. */
export class Inflight {
  readonly #running = new Map<AbortController, RunningAbout>();
  readonly #idle = new Set<() => void>();
  #draining = false;
  #stopped = false;

  /** New requests are refused. */
  get draining(): boolean {
    return this.#draining;
  }

  /** What the caller hears of `error`: one that was cancelled because this server stops did not cancel itself. */
  reasonOf(error: unknown): unknown {
    const stopped = this.#stopped && error instanceof QueryError && error.entry === 'cancelled';
    return stopped ? queryError('shuttingDown', {}) : error;
  }

  drain(): void {
    this.#draining = true;
  }

  /** What runs now. */
  get executions(): readonly RunningAbout[] {
    return [...this.#running.values()];
  }

  /** Stops the execution of this request; false where none is under way. */
  cancel(requestId: string): boolean {
    for (const [controller, { call }] of this.#running) {
      if (call.requestId !== requestId) continue;
      controller.abort();
      return true;
    }
    return false;
  }

  /** Runs `work` with a signal that fires when `response` closes before it is complete. */
  async run<T>(
    response: ServerResponse,
    about: About,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const onClose = (): void => {
      if (!response.writableFinished) controller.abort();
    };
    response.once('close', onClose);
    if (this.#stopped || response.destroyed) controller.abort();
    this.#running.set(controller, { ...about, since: Date.now() });
    try {
      return await work(controller.signal);
    } finally {
      response.off('close', onClose);
      this.#running.delete(controller);
      if (this.#running.size === 0) for (const resolve of this.#idle) resolve();
    }
  }

  /** Stops all that runs; resolves when each has ended, its outcome recorded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const controller of this.#running.keys()) controller.abort();
    await this.ended();
  }

  async ended(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#idle.add(resolve));
  }
}
