import type { Worker } from 'node:worker_threads';
import { answerOf, startThread, type ThreadFailure } from '../../base/threads/thread.js';
import type { BaselineMessage, DraftTask, FromDrafter, ToDrafter } from './messages.js';
import { inPortions, Portions } from './portions.js';

/** The drafting thread ended before it answered. */
export class DraftingEnded extends Error {
  override readonly name = 'DraftingEnded';
  readonly why: ThreadFailure;

  constructor(why: ThreadFailure, detail: string) {
    super(`the thread that judges drafts ended: ${detail}`);
    this.why = why;
  }
}

/** Time limit for starting the thread and compiling the served model: as long as the server's own start. */
const GROUND_MS = 120_000;
const MEMORY_MB = 1_024;

/**
 * Compiles and checks drafts in a separate thread, since only ending the thread can stop a compilation. One exchange
 * at a time; messages are sent in portions, between which either side does other work.
 */
export class DraftingThread {
  readonly #deadlineMs: number;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  #ground: string | null = null;

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /** Result of `task` against the baseline, sent first unless the thread has `key`. Rejects with DraftingEnded. */
  async ask<T>(task: DraftTask, key: string, ground: () => BaselineMessage): Promise<T> {
    try {
      const worker = this.#worker ?? this.#start();
      await this.#ready;
      if (this.#ground !== key) {
        this.#ground = null;
        await exchange(worker, ground(), GROUND_MS);
        this.#ground = key;
      }
      return await exchange<T>(worker, task, this.#deadlineMs);
    } catch (error) {
      await this.close(); // the thread may have received half of a message
      throw error;
    }
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    this.#ground = null;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = startThread(new URL('./drafting-worker.js', import.meta.url), {
      maxOldGenerationSizeMb: MEMORY_MB,
    });
    this.#worker = worker;
    this.#ready = draftingAnswer(worker, GROUND_MS, (message) =>
      message.kind === 'ready' ? { value: undefined } : null,
    );
    this.#ready.catch(() => undefined); // reported by `ask`
    return worker;
  }
}

async function exchange<T>(
  worker: Worker,
  said: BaselineMessage | DraftTask,
  deadlineMs: number,
): Promise<T> {
  const say = (message: ToDrafter): void => worker.postMessage(message);
  const portions = new Portions();
  const answer = draftingAnswer(worker, deadlineMs, (message): { value: T } | null => {
    if (message.kind === 'failed') throw new DraftingEnded('failed', message.reason);
    if (message.kind !== 'portion') return null;
    portions.add(message.portion);
    if (message.last) return { value: portions.whole<T>() };
    setImmediate(() => say({ kind: 'more' }));
    return null;
  });
  answer.catch(() => undefined); // reported below
  await inPortions(said, (portion, last) => say({ kind: 'portion', portion, last }));
  return answer;
}

function draftingAnswer<T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: FromDrafter) => { readonly value: T } | null,
): Promise<T> {
  return answerOf(worker, deadlineMs, read, (why, detail) => new DraftingEnded(why, detail));
}
