import { Worker } from 'node:worker_threads';
import type { FromDrafter, Ground, Task, ToDrafter } from './messages.js';
import { inPortions, Portions } from './portions.js';

/** Why a thread that judges drafts ended before it had an answer. */
export class DraftingEnded extends Error {
  override readonly name = 'DraftingEnded';
  readonly why: 'late' | 'memory' | 'failed';

  constructor(why: DraftingEnded['why'], detail: string) {
    super(`the thread that judges drafts ended: ${detail}`);
    this.why = why;
  }
}

/** How long the thread may take to start, and to compile what is served: as long as the server's own start. */
const GROUND_MS = 120_000;
const MEMORY_MB = 1_024;

/**
 * What compiles and judges drafts, in a thread of its own: nothing stops it but the thread's end. One exchange at a
 * time; what is sent and answered crosses in portions, between which the sender serves others.
 */
export class DraftingThread {
  readonly #deadlineMs: number;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  /** What the thread stands on. */
  #ground: string | null = null;

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /** What the thread says to `task`, as it stands on `ground`, which `key` identifies. Rejects with DraftingEnded. */
  async ask<T>(task: Task, key: string, ground: () => Ground): Promise<T> {
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
      if (error instanceof DraftingEnded) await this.close();
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
    const worker = new Worker(new URL('./drafting-worker.js', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
    });
    worker.unref();
    worker.on('error', () => undefined); // who waits for an answer hears it too
    this.#worker = worker;
    this.#ready = settledBy(worker, GROUND_MS, (message) =>
      message.kind === 'ready' ? { value: undefined } : null,
    );
    this.#ready.catch(() => undefined); // `ask` hears it
    return worker;
  }
}

async function exchange<T>(worker: Worker, said: Ground | Task, deadlineMs: number): Promise<T> {
  const say = (message: ToDrafter): void => worker.postMessage(message);
  const portions = new Portions();
  const answer = settledBy(worker, deadlineMs, (message): { value: T } | null => {
    if (message.kind === 'failed') throw new DraftingEnded('failed', message.reason);
    if (message.kind !== 'portion') return null;
    portions.add(message.portion);
    if (message.last) return { value: portions.whole<T>() };
    setImmediate(() => say({ kind: 'more' }));
    return null;
  });
  answer.catch(() => undefined); // heard below
  await inPortions(said, (portion, last) => say({ kind: 'portion', portion, last }));
  return answer;
}

/** What `read` finds in a message of `worker`, in time. */
function settledBy<T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: FromDrafter) => { readonly value: T } | null,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(late);
      worker.off('message', hear);
      worker.off('error', broken);
      worker.off('exit', gone);
      worker.unref();
      settle();
    };
    const hear = (message: FromDrafter): void => {
      try {
        const found = read(message);
        if (found !== null) end(() => resolve(found.value));
      } catch (error) {
        end(() => reject(error));
      }
    };
    const broken = (error: Error): void => {
      const memory = 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      end(() => reject(new DraftingEnded(memory ? 'memory' : 'failed', error.message)));
    };
    const gone = (): void => end(() => reject(new DraftingEnded('failed', 'it is gone')));
    const late = setTimeout(
      () => end(() => reject(new DraftingEnded('late', `no answer in ${deadlineMs} ms`))),
      deadlineMs,
    );
    worker.on('message', hear);
    worker.once('error', broken);
    worker.once('exit', gone);
    worker.ref();
  });
}
