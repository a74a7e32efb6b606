import type { EmbeddingProtocol } from '../../model/manifest/index.js';
import { type HttpEndpoint, member, postJson } from '../http.js';
import { cut, type DenseLayout, type Embedder, malformed, type TextRole, unitVector } from './embedder.js';

interface EmbeddingRequest {
  readonly model: string;
  readonly texts: readonly string[];
  readonly role: TextRole;
  /** Sent only if set: many servers reject unknown fields. */
  readonly dimensions: number | undefined;
}

interface EmbeddingShape {
  readonly path: string;
  body(request: EmbeddingRequest): unknown;
  /** Extracts the vectors from a response, in the order of the texts. @throws ContentError `malformedAnswer` */
  vectors(answer: unknown, count: number): readonly unknown[];
}

const SHAPES: Readonly<Record<EmbeddingProtocol, EmbeddingShape>> = {
  openai: {
    path: '/embeddings',
    body: ({ model, texts, dimensions }) => ({
      model,
      input: texts,
      // Not `base64`: decoding the answer of a server that ignores the format would silently yield wrong vectors.
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
  // The server has only one model, so its name is not sent.
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

function shapeOf(protocol: EmbeddingProtocol): EmbeddingShape {
  return SHAPES[protocol];
}

/** Extracts vectors from objects that each state the index of their text. */
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

/** An embedding server, its request settings, and the type in which its vectors are stored. */
export interface EmbeddingEndpoint extends HttpEndpoint {
  readonly model: string;
  /** Format of requests and responses. Default: `openai`. */
  readonly protocol?: EmbeddingProtocol;
  /** Sent only if set: many servers reject unknown fields. */
  readonly dimensions?: number;
  /** Maximum length of a text that is sent, in UTF-16 code units. Default: 8,000. */
  readonly maxChars?: number;
  /** Number of texts per request, at most 32. Default: 32. */
  readonly batch?: number;
  /** Prefixes for documents and queries, for models that were trained with them. */
  readonly prefixes?: { readonly document: string; readonly query: string };
  readonly store?: Partial<Pick<DenseLayout, 'type'>>;
}

const LARGEST_BATCH = 32;
const DEFAULT_MAX_CHARS = 8_000;

/**
 * Opens an embedder for the endpoint. Sends one request to determine the width of the vectors.
 *
 * @throws ContentError `endpoint`, `malformedAnswer`
 */
export async function openEmbeddingEndpoint(endpoint: EmbeddingEndpoint): Promise<Embedder> {
  const ask = (texts: readonly string[], role: TextRole, width: number | null, signal?: AbortSignal) =>
    askEndpoint(endpoint, texts, role, width, signal);
  const [probe] = await ask(['width'], 'document', endpoint.dimensions ?? null);
  const dimensions = probe?.length ?? 0;
  const batch = Math.max(1, Math.min(endpoint.batch ?? LARGEST_BATCH, LARGEST_BATCH));
  const prefixes = endpoint.prefixes ?? { document: '', query: '' };
  return {
    model: endpoint.model,
    fingerprint: fingerprintOf(endpoint, dimensions),
    layout: { kind: 'dense', dimensions, type: endpoint.store?.type ?? 'vector' },
    async embed(texts, role, signal) {
      const out: Float32Array[] = [];
      for (let at = 0; at < texts.length; at += batch) {
        const part = texts.slice(at, at + batch).map((text) => prefixes[role] + text);
        out.push(...(await ask(part, role, dimensions, signal)));
      }
      return out;
    },
    close: async () => {},
  };
}

/**
 * Returns a fingerprint of the settings that affect the vectors. It omits the URL, because a model that moves to
 * another server returns the same vectors.
 */
function fingerprintOf(endpoint: EmbeddingEndpoint, dimensions: number): string {
  const { model, protocol = 'openai', prefixes, maxChars = DEFAULT_MAX_CHARS, store } = endpoint;
  return `${protocol};${JSON.stringify([model, dimensions, prefixes ?? null, maxChars, store ?? null])};r1`;
}

async function askEndpoint(
  endpoint: EmbeddingEndpoint,
  texts: readonly string[],
  role: TextRole,
  width: number | null,
  signal?: AbortSignal,
): Promise<readonly Float32Array[]> {
  const { model, dimensions } = endpoint;
  const limit = endpoint.maxChars ?? DEFAULT_MAX_CHARS;
  const shape = shapeOf(endpoint.protocol ?? 'openai');
  // Some endpoints reject empty texts.
  const sent = texts.map((text) => cut(text, limit) || ' ');
  const answer = await postJson(
    endpoint,
    shape.path,
    shape.body({ model, texts: sent, role, dimensions }),
    signal,
  );
  let known = width;
  return shape.vectors(answer, texts.length).map((vector) => {
    if (!Array.isArray(vector) || !vector.every((x) => typeof x === 'number')) {
      throw malformed('an embedding that is not a list of numbers');
    }
    known ??= vector.length;
    return unitVector(vector, known);
  });
}
