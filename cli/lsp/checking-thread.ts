import { Worker } from 'node:worker_threads';
import type { CheckReply, CheckRequest, CheckResults, CheckTask } from './messages.js';

/** MiB. A manifest of 10,000 entities takes some hundreds. */
const MEMORY_MB = 2_048;

type Settle = (answer: CheckReply | null) => void;

/** Compiles what is being edited, in a thread of its own; one that ends is begun anew with the next task. */
export class CheckingThread {
  readonly #waiting = new Map<number, Settle>();
  #worker: Worker | null = null;
  #next = 0;

  /** What the thread says to `task`; null where it ended before it had. @throws Error with the thread's own stack */
  ask<K extends CheckTask['kind']>(
    task: Extract<CheckTask, { readonly kind: K }>,
  ): Promise<CheckResults[K] | null> {
    const worker = this.#worker ?? this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, (answer) => {
        if (answer === null) resolve(null);
        else if ('failed' in answer) reject(new Error(answer.failed));
        else resolve(answer.result as CheckResults[K]); // the thread answers each task with what is its own
      });
      worker.postMessage({ id, task } satisfies CheckRequest);
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checking-worker.js', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
      // What it printed would be taken for a message of the protocol.
      stdout: true,
    });
    worker.stdout.pipe(process.stderr);
    worker.on('message', (answer: CheckReply) => {
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
    const ended = (): void => {
      if (this.#worker === worker) this.#worker = null;
      for (const settle of this.#waiting.values()) settle(null);
      this.#waiting.clear();
    };
    worker.once('error', ended).once('exit', ended);
    this.#worker = worker;
    return worker;
  }
}
