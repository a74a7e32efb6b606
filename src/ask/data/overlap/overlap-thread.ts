import type { Worker } from 'node:worker_threads';
import { FairSlots } from '../../../base/threads/fair-slots.js';
import { answerOf, IdleThread } from '../../../base/threads/thread.js';
import type { AnswerToAdmit, OverlapDecision, OverlapUpdate } from './decide.js';

export type OverlapJob =
  | { readonly kind: 'repeated'; readonly stored: readonly (Uint8Array | null)[]; readonly digest: string }
  | { readonly kind: 'decide'; readonly answer: AnswerToAdmit };

export type FromOverlapThread =
  | { readonly kind: 'repeated'; readonly value: boolean }
  | { readonly kind: 'decided'; readonly value: OverlapUpdate<OverlapDecision> }
  | { readonly kind: 'failed'; readonly reason: string };

/** Time limit of one job in ms. */
const JOB_MS = 20_000;
const MAX_MEMORY_MB = 1_024;

/**
 * Compares answers in a separate thread, one at a time and fairly among callers: with a million rows this takes more
 * than a second, which must not delay the requests of other callers.
 */
export class OverlapThread {
  readonly #slots = new FairSlots();
  readonly #thread = new IdleThread(new URL('./overlap-worker.js', import.meta.url), MAX_MEMORY_MB);

  /** Returns true if all histories in `stored` contain the question. */
  async isRepeated(stored: readonly (Buffer | null)[], digest: string, caller: string): Promise<boolean> {
    if (stored.includes(null)) return false;
    const answer = await this.#run({ kind: 'repeated', stored, digest }, caller);
    return answer.kind === 'repeated' && answer.value;
  }

  /** Runs `decide` in the thread. @throws Error if the thread fails, or too many jobs of the caller wait */
  async decide(answer: AnswerToAdmit, caller: string): Promise<OverlapUpdate<OverlapDecision>> {
    const reply = await this.#run({ kind: 'decide', answer }, caller);
    if (reply.kind !== 'decided') throw new Error('the thread that compares answers did not decide');
    const { result, changed } = reply.value;
    return { result, changed: changed.map((history) => ({ ...history, bytes: Buffer.from(history.bytes) })) };
  }

  close(): Promise<void> {
    return this.#thread.end();
  }

  async #run(job: OverlapJob, caller: string): Promise<Exclude<FromOverlapThread, { kind: 'failed' }>> {
    if (this.#slots.isFull(caller)) throw new Error('too many answers wait to be compared');
    return this.#slots.take(caller, () => this.#thread.use((worker) => answerFrom(worker, job)));
  }
}

function answerFrom(worker: Worker, job: OverlapJob) {
  const answer = answerOf(
    worker,
    JOB_MS,
    (message: FromOverlapThread) => {
      if (message.kind === 'failed') throw new Error(message.reason);
      return { value: message };
    },
    (cause, detail) => new Error(`answers were not compared (${cause}): ${detail}`),
  );
  worker.postMessage(job);
  return answer;
}

/** Stores histories of answers, as bytes under opaque keys. */
export interface OverlapStore {
  /** Returns the stored histories, in the order of `keys`; null for a key without a history. */
  read(keys: readonly string[]): Promise<readonly (Buffer | null)[]>;
  /** Runs `work` on the stored histories and stores the changes that it returns, excluding concurrent changes. */
  update<T>(
    keys: readonly string[],
    work: (stored: readonly (Buffer | null)[]) => Promise<OverlapUpdate<T>>,
  ): Promise<T>;
  /** The thread that compares answers with the histories. */
  readonly thread: OverlapThread;
  close(): Promise<void>;
}
