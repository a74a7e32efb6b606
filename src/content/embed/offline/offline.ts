import type { Worker } from 'node:worker_threads';
import { FairSlots } from '../../../base/threads/fair-slots.js';
import { answerOf, startThread } from '../../../base/threads/thread.js';
import type { MeaningModel } from '../../../model/facets/retrieval-options.js';
import { ContentError } from '../../content-error.js';
import type { Embedder } from '../embedder.js';
import { lexicalEmbedder, NGRAM_DIMENSIONS } from '../lexical-v1.js';
import type { FromModel } from './words.js';

/** Number of texts per message. Between messages, other callers get their turn and an aborted call ends. */
const BATCH = 16;

/**
 * Opens an embedder that finds passages as `lexical-v1` does. Operators compare texts by their n-grams and by their
 * meaning, which a model computes in a separate thread.
 *
 * @throws ContentError `notInstalled`, `endpoint`, `malformedAnswer`
 */
export async function openOffline(model: MeaningModel): Promise<Embedder> {
  const thread = new ModelThread(model);
  const { identity, dimensions } = await thread.opened();
  let calls = 0;
  return Object.freeze({
    model,
    fingerprint: `${model};${identity};${lexicalEmbedder.fingerprint}`,
    // Meaning vectors are scaled by the length of the n-gram vector, so their components may exceed the integers that
    // `halfvec` represents exactly.
    layout: Object.freeze({
      kind: 'lexical',
      dimensions: NGRAM_DIMENSIONS + dimensions,
      type: 'vector',
    } as const),
    async embed(texts: readonly string[], _role: unknown, signal?: AbortSignal) {
      const call = `${calls++}`;
      const out: Float32Array[] = [];
      for (let at = 0; at < texts.length; at += BATCH) {
        signal?.throwIfAborted();
        out.push(...(await thread.vectors(call, texts.slice(at, at + BATCH))));
      }
      return out;
    },
    close: () => thread.end(),
  });
}

type ModelOpened = Extract<FromModel, { kind: 'opened' }>;

/** Time limit for loading the model, and for embedding one list of texts. */
const DEADLINE_MS = 60_000;

/**
 * A model in a separate thread that serves one request at a time, fairly among callers. If the thread has ended, it is
 * restarted.
 */
class ModelThread {
  readonly #model: MeaningModel;
  readonly #turns = new FairSlots();
  #begun: { readonly worker: Worker; readonly opened: ModelOpened } | null = null;

  constructor(model: MeaningModel) {
    this.#model = model;
  }

  /** Loads the model. @throws ContentError `notInstalled`, `endpoint` */
  opened(): Promise<ModelOpened> {
    return this.#turns.take('', async () => (await this.#running()).opened);
  }

  /** Computes one meaning vector per text. @throws ContentError `notInstalled`, `endpoint`, `malformedAnswer` */
  vectors(caller: string, texts: readonly string[]): Promise<readonly Float32Array[]> {
    return this.#turns.take(caller, async () => {
      const { worker } = await this.#running();
      const answered = this.#answer(worker, (said) => (said.kind === 'vectors' ? said.vectors : null));
      worker.postMessage(texts);
      return answered;
    });
  }

  async end(): Promise<void> {
    const worker = this.#begun?.worker;
    this.#begun = null;
    await worker?.terminate();
  }

  async #running(): Promise<{ readonly worker: Worker; readonly opened: ModelOpened }> {
    if (this.#begun !== null) return this.#begun;
    const file = new URL('./model-worker.js', import.meta.url);
    const worker = startThread(file, { maxOldGenerationSizeMb: 512 }, this.#model);
    const opened = await this.#answer(worker, (said) => (said.kind === 'opened' ? said : null));
    this.#begun = { worker, opened };
    return this.#begun;
  }

  /**
   * Waits for the thread's next message, parsed by `read`. A thread that fails or misses the deadline is terminated.
   */
  async #answer<T>(worker: Worker, read: (said: FromModel) => T | null): Promise<T> {
    try {
      return await answerOf(
        worker,
        DEADLINE_MS,
        (said: FromModel) => {
          if (said.kind === 'failed') throw new ContentError(said.code, said.reason, said.hint);
          const value = read(said);
          return value === null ? null : { value };
        },
        (_, detail) => new ContentError('endpoint', `the thread of \`${this.#model}\` ended: ${detail}`),
      );
    } catch (error) {
      this.#begun = null;
      await worker.terminate();
      throw error;
    }
  }
}
