import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { QueryError, queryError } from 'osl-compiler';
import type { RequestCall } from '../../ask/index.js';

/** Description of an execution, for operators. */
export interface ExecutionInfo {
  readonly call: RequestCall;
  readonly action: string;
  /** Text of the query; null if the execution has none. */
  readonly text: string | null;
}

export interface RunningExecution extends ExecutionInfo {
  readonly since: number;
}

/**
 * Running executions. An execution is aborted if its client disconnects, and all are aborted when the drain deadline
 * passes.
 */
export class Inflight {
  readonly #running = new Map<AbortController, RunningExecution>();
  readonly #onIdle = new Set<() => void>();
  readonly #draining = new AbortController();
  #stopped = false;

  constructor() {
    setMaxListeners(0, this.#draining.signal); // one listener for each subscription
  }

  get draining(): boolean {
    return this.#draining.signal.aborted;
  }

  /** Signal that aborts once the server takes no new requests. */
  get drainSignal(): AbortSignal {
    return this.#draining.signal;
  }

  /**
   * Returns the error to report: an execution aborted because the server stops fails with E5032 rather than as
   * cancelled.
   */
  toReportedError(error: unknown): unknown {
    const isShutdown = this.#stopped && error instanceof QueryError && error.entry === 'cancelled';
    return isShutdown ? queryError('shuttingDown', {}) : error;
  }

  drain(): void {
    this.#draining.abort();
  }

  get executions(): readonly RunningExecution[] {
    return [...this.#running.values()];
  }

  cancel(requestId: string): boolean {
    for (const [controller, { call }] of this.#running) {
      if (call.requestId !== requestId) continue;
      controller.abort();
      return true;
    }
    return false;
  }

  /**
   * Runs `work` with a signal that is aborted if `response` closes before it is complete, and by `cancel` and `stop`.
   */
  async run<T>(
    response: ServerResponse,
    info: ExecutionInfo,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const controller = new AbortController();
    const onClose = (): void => {
      if (!response.writableFinished) controller.abort();
    };
    response.once('close', onClose);
    if (this.#stopped || response.destroyed) controller.abort();
    this.#running.set(controller, { ...info, since: Date.now() });
    try {
      return await work(controller.signal);
    } finally {
      response.off('close', onClose);
      this.#running.delete(controller);
      if (this.#running.size === 0) for (const resolve of this.#onIdle) resolve();
    }
  }

  /** Aborts all executions; resolves when each has ended and its outcome has been recorded. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const controller of this.#running.keys()) controller.abort();
    await this.allEnded();
  }

  async allEnded(): Promise<void> {
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => this.#onIdle.add(resolve));
  }
}
