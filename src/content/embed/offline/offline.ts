import type { MeaningModel } from '../../../model/facets/embedding-models.js';
import { NGRAM_DIMENSIONS } from '../../lexical/ngrams.js';
import type { Embedder } from '../embedder.js';
import { lexicalEmbedder } from '../lexical-v1.js';
import { ModelThread } from './model-thread.js';

/** Texts of one message: between two, others that wait have their turn, and what was stopped ends. */
const BATCH = 16;

/**
 * Finds passages as `lexical-v1` does; operators compare n-grams with what a text means beside them, by a model in a
 * thread of its own.
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
    // What a text means is weighed by how long its n-grams' vector is: its numbers have no bound that `halfvec` says exactly.
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
