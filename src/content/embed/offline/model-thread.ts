import type { Worker } from 'node:worker_threads';
import { answerOf } from '../../../base/threads/answer.js';
import { startThread } from '../../../base/threads/thread.js';
import { FairSlots } from '../../../base/threads/turns.js';
import type { MeaningModel } from '../../../model/facets/embedding-models.js';
import { ContentError } from '../../content-error.js';
import type { FromModel } from './messages.js';

type ModelOpened = Extract<FromModel, { kind: 'opened' }>;

/** To load it, and for one list of texts. */
const DEADLINE_MS = 60_000;

/** A model in a thread of its own, asked one thing at a time, callers in turn. One that ended is begun anew. */
export class ModelThread {
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

  /** @throws ContentError `notInstalled`, `endpoint`, `malformedAnswer` */
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

  /** What `read` finds in the next message. A thread that failed or is late is ended. */
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
