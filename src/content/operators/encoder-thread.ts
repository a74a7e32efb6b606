import type { Worker } from 'node:worker_threads';
import type { EncoderName } from 'osl-compiler';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { answerOf, IdleThread, type ThreadFailure } from '../../base/threads/thread.js';
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

/**
 * Thrown if an operator ends without a result: the thread ran out of time or memory, was stopped or failed, or too many
 * calls were waiting (`full`).
 */
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
 * Runs encoder operators in a separate thread, one at a time, with callers taking fair turns. The only way to stop an
 * operator is to end the thread.
 */
export class EncoderThread {
  readonly #turns = new FairSlots();
  readonly #thread = new IdleThread(new URL('./encoder-worker.js', import.meta.url), MAX_MEMORY_MB);

  /** Computes the column for `job`. Rejects with EncoderEnded; a thread that failed or was stopped is replaced. */
  async run(job: EncoderJob, { caller, deadlineMs, signal }: EncoderCall): Promise<readonly unknown[]> {
    if (this.#turns.isFull(caller)) throw new EncoderEnded('full', 'too many wait');
    return this.#turns.take(caller, () => {
      if (signal?.aborted === true) throw stopped();
      return this.#thread.use(async (worker) => {
        const stop = (): void => void worker.terminate();
        signal?.addEventListener('abort', stop, { once: true });
        try {
          return await columnFrom(worker, job, deadlineMs);
        } catch (error) {
          throw signal?.aborted === true ? stopped() : error;
        } finally {
          signal?.removeEventListener('abort', stop);
        }
      });
    });
  }
}

const MAX_MEMORY_MB = 512;

function stopped(): EncoderEnded {
  return new EncoderEnded('stopped', 'it was stopped');
}

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
