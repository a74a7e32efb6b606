import type { Worker } from 'node:worker_threads';
import type { EncoderName } from 'osl-compiler';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { answerOf, startThread, type ThreadFailure } from '../../base/threads/thread.js';
import type { ArgumentValues } from '../../model/facets/arguments.js';

export interface EncoderJob {
  readonly operator: EncoderName;
  readonly values: ArgumentValues;
  readonly query: string;
  readonly read: StoredVectors | OwnTexts;
  /** Vectors of `encoderTexts`; null if the thread computes them with `lexical-v1`. */
  readonly embedded: readonly Float32Array[] | null;
}

interface StoredVectors {
  readonly kind: 'stored';
  readonly passages: readonly {
    readonly chunkId: string;
    /** A `float4[]` in Postgres text format. */
    readonly vector: string;
  }[];
}

/** Texts that are not in a store. The thread computes their vectors with `lexical-v1` and identifies them by index. */
interface OwnTexts {
  readonly kind: 'texts';
  readonly texts: readonly string[];
}

export type FromEncoder =
  | { readonly kind: 'column'; readonly values: readonly unknown[] }
  | { readonly kind: 'failed'; readonly reason: string };

/** No result: the thread ran out of time or memory, was stopped or failed, or too many calls were waiting (`full`). */
export class EncoderEnded extends Error {
  override readonly name = 'EncoderEnded';
  readonly why: ThreadFailure | 'stopped' | 'full';

  constructor(why: EncoderEnded['why'], detail: string) {
    super(`an encoder operator ended: ${detail}`);
    this.why = why;
  }
}

export interface EncoderCall {
  readonly caller: string;
  /** Time limit, measured from when the call gets its turn. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | null;
}

/**
 * Runs encoder operators in a separate thread, one at a time, fairly among callers. The only way to stop an operator
 * is to end the thread.
 */
export class EncoderThread {
  readonly #turns = new FairSlots();
  #worker: Worker | null = null;
  #idle: NodeJS.Timeout | null = null;

  /** Computes the column for `job`. Rejects with EncoderEnded; the next call then uses a new thread. */
  async run(job: EncoderJob, { caller, deadlineMs, signal }: EncoderCall): Promise<readonly unknown[]> {
    if (this.#turns.isFull(caller)) throw new EncoderEnded('full', 'too many wait');
    return this.#turns.take(caller, async () => {
      if (signal?.aborted === true) throw new EncoderEnded('stopped', 'it was stopped');
      if (this.#idle !== null) clearTimeout(this.#idle);
      const worker = this.#worker ?? this.#start();
      let isStopped = false;
      const stop = (): void => {
        isStopped = true;
        worker.terminate();
      };
      signal?.addEventListener('abort', stop, { once: true });
      try {
        return await columnFrom(worker, job, deadlineMs);
      } catch (error) {
        await this.#end();
        throw isStopped ? new EncoderEnded('stopped', 'it was stopped') : error;
      } finally {
        signal?.removeEventListener('abort', stop);
        this.#idle = setTimeout(() => void this.#end(), IDLE_MS).unref();
      }
    });
  }

  #start(): Worker {
    const worker = startThread(new URL('./encoder-worker.js', import.meta.url), {
      maxOldGenerationSizeMb: 512,
    });
    this.#worker = worker;
    return worker;
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}

/** Idle time in ms after which the thread is ended, to free its memory. */
const IDLE_MS = 60_000;

function columnFrom(worker: Worker, job: EncoderJob, deadlineMs: number): Promise<readonly unknown[]> {
  const answer = answerOf(
    worker,
    deadlineMs,
    (message: FromEncoder) => {
      if (message.kind === 'failed') throw new EncoderEnded('failed', message.reason);
      return { value: message.values };
    },
    (why, detail) => new EncoderEnded(why, detail),
  );
  worker.postMessage(job);
  return answer;
}
