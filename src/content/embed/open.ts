import { isMeaningModel, LEXICAL_MODEL, MEANING_MODELS } from '../../model/facets/retrieval-options.js';
import type { FacetEmbedding } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { serverNamed } from '../http.js';
import type { Embedder } from './embedder.js';
import { lexicalEmbedder } from './lexical-v1.js';
import type { EmbeddingEndpoint } from './openai.js';
import type { TransformersModel } from './transformers.js';

const IN_PROCESS = 'transformers:';

export interface EmbedderSettings {
  /** Server for all models that do not run in this process; null if none is configured. */
  readonly endpoint: Omit<EmbeddingEndpoint, 'model'> | null;
  readonly transformers?: Omit<TransformersModel, 'model'>;
}

/**
 * Opens the embedder that a facet's `embedding.model` names: `lexical-v1`, `words-v1` or `sentences-v1`,
 * `transformers:<model>`, or a model on the configured endpoint.
 *
 * @throws ContentError `unknownModel` if no endpoint is configured; `notInstalled`, `endpoint`, `malformedAnswer`
 */
export async function openEmbedder(
  model: string,
  settings: EmbedderSettings,
  options: FacetEmbedding = DEFAULT_EMBEDDING,
): Promise<Embedder> {
  if (model === LEXICAL_MODEL) return lexicalEmbedder;
  if (isMeaningModel(model)) {
    const { openOffline } = await import('./offline/offline.js');
    return openOffline(model);
  }
  if (model.startsWith(IN_PROCESS)) {
    const { openTransformers } = await import('./transformers.js');
    const opened = await openTransformers({
      ...settings.transformers,
      model: model.slice(IN_PROCESS.length),
      ...storageOptions(options),
    });
    return { ...opened, model };
  }
  const { endpoint: named } = options;
  const endpoint =
    named === null ? settings.endpoint : { protocol: named.protocol, ...serverNamed(named.urlEnv) };
  if (endpoint !== null) {
    const { openEmbeddingEndpoint } = await import('./openai.js');
    const { dimensions } = options;
    const wide = dimensions === null ? {} : { dimensions };
    return openEmbeddingEndpoint({ ...endpoint, ...wide, ...storageOptions(options), model });
  }
  throw new ContentError(
    'unknownModel',
    `embedding model \`${model}\` needs an endpoint, and none is configured`,
    `without one, use ${[LEXICAL_MODEL, ...MEANING_MODELS].map((name) => `\`${name}\``).join(', ')} or \`${IN_PROCESS}<model>\``,
  );
}

const DEFAULT_EMBEDDING: FacetEmbedding = Object.freeze({
  endpoint: null,
  dimensions: null,
  prefixes: null,
  half: false,
});

function storageOptions({ prefixes, half }: FacetEmbedding): Pick<EmbeddingEndpoint, 'prefixes' | 'store'> {
  return {
    ...(prefixes !== null && { prefixes: { document: prefixes.passage, query: prefixes.query } }),
    ...(half && { store: { type: 'halfvec' as const } }),
  };
}
