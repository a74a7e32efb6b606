import { type Endpoint, postJson } from '../http.js';
import { cut, malformed, unitVector } from './checked.js';
import type { DenseLayout, Embedder } from './embedder.js';

/** An OpenAI-compatible `/v1/embeddings`, and how its vectors are kept. */
export interface EmbeddingEndpoint extends Endpoint {
  readonly model: string;
  /** Sent only where given: many servers refuse what they do not know. */
  readonly dimensions?: number;
  /** UTF-16 units of one text that are sent. Default 8,000. */
  readonly maxChars?: number;
  /** Texts of one request, 32 at most. Default 32. */
  readonly batch?: number;
  /** Put before each text, for models that were trained with one. */
  readonly prefixes?: { readonly document: string; readonly query: string };
  readonly store?: Partial<Pick<DenseLayout, 'type'>>;
}

const LARGEST_BATCH = 32;
const DEFAULT_MAX_CHARS = 8_000;

/**
 * Asks the endpoint once, to learn the width of its vectors.
 *
 * @throws ContentError `endpoint`, `malformedAnswer`
 */
export async function openEmbeddingEndpoint(endpoint: EmbeddingEndpoint): Promise<Embedder> {
  const ask = (texts: readonly string[], width: number | null, signal?: AbortSignal) =>
    askEndpoint(endpoint, texts, width, signal);
  const [probe] = await ask(['width'], endpoint.dimensions ?? null);
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
        out.push(...(await ask(part, dimensions, signal)));
      }
      return out;
    },
    close: async () => {},
  };
}

/** The address is no part of it: a model that moves house gives the same vectors. */
function fingerprintOf(endpoint: EmbeddingEndpoint, dimensions: number): string {
  const { model, prefixes, maxChars = DEFAULT_MAX_CHARS, store } = endpoint;
  return `openai;${JSON.stringify([model, dimensions, prefixes ?? null, maxChars, store ?? null])};r1`;
}

async function askEndpoint(
  endpoint: EmbeddingEndpoint,
  texts: readonly string[],
  width: number | null,
  signal?: AbortSignal,
): Promise<readonly Float32Array[]> {
  const limit = endpoint.maxChars ?? DEFAULT_MAX_CHARS;
  const body = {
    model: endpoint.model,
    // Some endpoints refuse an empty text, and none says anything of it.
    input: texts.map((text) => cut(text, limit) || ' '),
    // Servers that ignore `base64` would give vectors of a quarter of the width, and no error.
    encoding_format: 'float',
    ...(endpoint.dimensions === undefined ? {} : { dimensions: endpoint.dimensions }),
  };
  const answer = await postJson(endpoint, '/embeddings', body, signal);
  return vectorsOf(answer, texts.length, width);
}

function vectorsOf(answer: unknown, count: number, width: number | null): readonly Float32Array[] {
  const data = member(answer, 'data');
  if (!Array.isArray(data)) throw malformed('no `data`');
  if (data.length !== count) throw malformed(`${data.length} vectors for ${count} texts`);
  const out: (Float32Array | undefined)[] = new Array(count).fill(undefined);
  for (const [i, item] of data.entries()) {
    const at = member(item, 'index') ?? i;
    const vector = member(item, 'embedding');
    if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at >= count || out[at] !== undefined) {
      throw malformed('indexes that do not number the texts');
    }
    if (!Array.isArray(vector) || !vector.every((x) => typeof x === 'number')) {
      throw malformed('an embedding that is no list of numbers');
    }
    out[at] = unitVector(vector, width ?? out.find((v) => v !== undefined)?.length ?? null);
  }
  return out.filter((v) => v !== undefined);
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
