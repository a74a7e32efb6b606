import type { EmbeddingProtocol } from '../../model/manifest/index.js';
import { member } from '../http.js';
import type { TextRole } from './embedder.js';
import { malformed } from './embedder.js';

/** What is asked of an embedding server, whatever it speaks. */
interface EmbeddingRequest {
  readonly model: string;
  readonly texts: readonly string[];
  readonly role: TextRole;
  /** Sent only where given: many servers refuse what they do not know. */
  readonly dimensions: number | undefined;
}

/** How one kind of server is asked. */
export interface EmbeddingShape {
  /** Below the endpoint's URL. */
  readonly path: string;
  body(request: EmbeddingRequest): unknown;
  /** The lists of numbers, in the order of the texts. @throws ContentError `malformedAnswer` */
  vectors(answer: unknown, count: number): readonly unknown[];
}

const SHAPES: Readonly<Record<EmbeddingProtocol, EmbeddingShape>> = {
  openai: {
    path: '/embeddings',
    body: ({ model, texts, dimensions }) => ({
      model,
      input: texts,
      // Servers that ignore `base64` would give vectors of a quarter of the width, and no error.
      encoding_format: 'float',
      ...(dimensions !== undefined && { dimensions }),
    }),
    vectors: (answer, count) => numbered(member(answer, 'data'), count),
  },
  voyage: {
    path: '/embeddings',
    body: ({ model, texts, role, dimensions }) => ({
      model,
      input: texts,
      input_type: role,
      ...(dimensions !== undefined && { output_dimension: dimensions }),
    }),
    vectors: (answer, count) => numbered(member(answer, 'data'), count),
  },
  ollama: {
    path: '/api/embed',
    body: ({ model, texts, dimensions }) => ({
      model,
      input: texts,
      ...(dimensions !== undefined && { dimensions }),
    }),
    vectors: (answer, count) => listed(member(answer, 'embeddings'), count),
  },
  // The server has one model, which it does not want to be told.
  tei: {
    path: '/embed',
    body: ({ texts, dimensions }) => ({
      inputs: texts,
      truncate: true,
      ...(dimensions !== undefined && { dimensions }),
    }),
    vectors: (answer, count) => listed(answer, count),
  },
};

export function shapeOf(protocol: EmbeddingProtocol): EmbeddingShape {
  return SHAPES[protocol];
}

/** Objects that say which text they are of. */
function numbered(data: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(data)) throw malformed('no `data`');
  if (data.length !== count) throw malformed(`${data.length} vectors for ${count} texts`);
  const out: unknown[] = new Array(count).fill(undefined);
  for (const [i, item] of data.entries()) {
    const at = member(item, 'index') ?? i;
    if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at >= count || out[at] !== undefined) {
      throw malformed('indexes that do not number the texts');
    }
    out[at] = member(item, 'embedding') ?? null;
  }
  return out;
}

function listed(vectors: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(vectors)) throw malformed('no embeddings');
  if (vectors.length !== count) throw malformed(`${vectors.length} vectors for ${count} texts`);
  return vectors;
}
