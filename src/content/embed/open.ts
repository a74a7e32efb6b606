import { ContentError } from '../content-error.js';
import type { Embedder } from './embedder.js';
import { LEXICAL_MODEL, lexicalEmbedder } from './lexical-v1.js';
import { type EmbeddingEndpoint, openEmbeddingEndpoint } from './openai.js';
import { openTransformers, type TransformersModel } from './transformers.js';

const IN_PROCESS = 'transformers:';

export interface EmbedderSettings {
  /** Serves every model that is neither built in nor in-process; null where none is configured. */
  readonly endpoint: Omit<EmbeddingEndpoint, 'model'> | null;
  readonly transformers?: Omit<TransformersModel, 'model'>;
}

/**
 * The embedder that a facet's `embedding.model` names: `lexical-v1`, `transformers:<model>`, or a model of the
 * configured endpoint.
 *
 * @throws ContentError `unknownModel` where no endpoint is configured; `notInstalled`, `endpoint`,
 * `malformedAnswer`
 */
export async function openEmbedder(model: string, settings: EmbedderSettings): Promise<Embedder> {
  if (model === LEXICAL_MODEL) return lexicalEmbedder;
  if (model.startsWith(IN_PROCESS)) {
    const opened = await openTransformers({
      ...settings.transformers,
      model: model.slice(IN_PROCESS.length),
    });
    return { ...opened, model };
  }
  if (settings.endpoint !== null) return openEmbeddingEndpoint({ ...settings.endpoint, model });
  throw new ContentError(
    'unknownModel',
    `embedding model \`${model}\` needs an endpoint, and none is configured`,
    `without one, use \`${LEXICAL_MODEL}\` or \`${IN_PROCESS}<model>\``,
  );
}
