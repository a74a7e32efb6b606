import { ContentError } from '../content-error.js';
import { cut, type DenseLayout, type Embedder, unitVector } from './embedder.js';

/** A model that runs in this process with `@huggingface/transformers`, which the operator installs. */
export interface TransformersModel {
  readonly model: string;
  readonly pooling?: 'mean' | 'cls';
  /** Quantization of the model's weights. Default: `q8`. */
  readonly dtype?: string;
  readonly maxChars?: number;
  readonly prefixes?: { readonly document: string; readonly query: string };
  readonly store?: Partial<Pick<DenseLayout, 'type'>>;
}

interface TransformersModule {
  pipeline(task: string, model: string, options: Record<string, unknown>): Promise<FeatureExtraction>;
}

interface FeatureExtraction {
  (texts: readonly string[], options: Record<string, unknown>): Promise<Tensor>;
  dispose?(): Promise<unknown>;
}

/** A row-major matrix; `dims` is the number of texts and the vector width. */
interface Tensor {
  readonly data: ArrayLike<number>;
  readonly dims: readonly number[];
}

const PACKAGE = '@huggingface/transformers';
const BATCH = 16;
const DEFAULT_MAX_CHARS = 4_000;

/**
 * Loads the package and the model, which the package downloads on first use.
 *
 * @param load replaces the package in tests
 * @throws ContentError `notInstalled`, `endpoint` if the model cannot be loaded, `malformedAnswer`
 */
export async function openTransformers(
  options: TransformersModel,
  load: () => Promise<unknown> = importPackage,
): Promise<Embedder> {
  const { model, pooling = 'mean', dtype = 'q8', maxChars = DEFAULT_MAX_CHARS } = options;
  const extract = await pipelineOf(await load(), model, dtype);
  const prefixes = options.prefixes ?? { document: '', query: '' };
  const ask = async (texts: readonly string[], width: number | null) =>
    rowsOf(await extract(texts, { pooling, normalize: true }), texts.length, width);
  const [probe] = await ask(['width'], null);
  const dimensions = probe?.length ?? 0;
  const { type = 'vector' } = options.store ?? {};
  return {
    model,
    fingerprint: `transformers;${JSON.stringify([model, dimensions, pooling, dtype, maxChars, prefixes, type])};r1`,
    layout: { kind: 'dense', dimensions, type },
    async embed(texts, role, signal) {
      const out: Float32Array[] = [];
      for (let at = 0; at < texts.length; at += BATCH) {
        signal?.throwIfAborted();
        const part = texts.slice(at, at + BATCH).map((text) => cut(prefixes[role] + text, maxChars) || ' ');
        out.push(...(await ask(part, dimensions)));
      }
      return out;
    },
    close: async () => {
      await extract.dispose?.();
    },
  };
}

async function importPackage(): Promise<unknown> {
  // The name is not a literal: the package is optional, and a build without it must type-check.
  const name: string = PACKAGE;
  try {
    return await import(name);
  } catch (error) {
    const missing = error instanceof Error && Reflect.get(error, 'code') === 'ERR_MODULE_NOT_FOUND';
    throw new ContentError(
      'notInstalled',
      missing ? `${PACKAGE} is not installed` : `${PACKAGE} cannot be loaded`,
      `install it with \`npm install ${PACKAGE}\`, or use another embedding model`,
    );
  }
}

async function pipelineOf(loaded: unknown, model: string, dtype: string): Promise<FeatureExtraction> {
  if (!isModule(loaded)) throw new ContentError('notInstalled', `${PACKAGE} has no \`pipeline\``);
  try {
    return await loaded.pipeline('feature-extraction', model, { dtype });
  } catch {
    throw new ContentError('endpoint', `the model \`${model}\` cannot be loaded`);
  }
}

function isModule(loaded: unknown): loaded is TransformersModule {
  return (
    typeof loaded === 'object' && loaded !== null && typeof Reflect.get(loaded, 'pipeline') === 'function'
  );
}

function rowsOf({ data, dims }: Tensor, count: number, width: number | null): readonly Float32Array[] {
  const each = dims[1] ?? 0;
  if (dims.length !== 2 || dims[0] !== count || data.length !== count * each) {
    throw new ContentError('malformedAnswer', 'the embedding model answered a tensor of another shape');
  }
  return Array.from({ length: count }, (_, i) =>
    unitVector(Array.prototype.slice.call(data, i * each, (i + 1) * each), width),
  );
}
