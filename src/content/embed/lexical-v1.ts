import { LEXICAL_MODEL } from '../../model/facets/retrieval-options.js';
import { B, hash32, hashEnd, hashStep, K1, TERM_SPACE } from '../lexical/bm25.js';
import type { Embedder } from './embedder.js';

export const NGRAM_DIMENSIONS = 1024;

const SHORTEST = 3;
const LONGEST = 5;
const SEED = 0x9747b28c;
const WORD_SEED = 0x1b873593;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/** Largest absolute value of a component, which is an integer. */
const LARGEST = 127;

/**
 * Hashes the words and the character 3- to 5-grams of a text into a vector. The vector does not depend on the corpus:
 * equal texts have equal vectors in every store. Only its direction matters, so components are integers: sums of
 * products are exact in any order, and the stored text is short.
 *
 * @returns 1024 numbers; all 0 for a text without a letter or digit
 */
export function ngramVector(text: string): Float32Array {
  const counts = new Map<string, number>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORD)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const sums = new Float64Array(NGRAM_DIMENSIONS);
  for (const [word, count] of counts) {
    const weight = Math.sqrt(count);
    add(sums, hash32(word, WORD_SEED), weight);
    addGrams(sums, `<${word}>`, weight);
  }
  return scaled(sums);
}

function addGrams(sums: Float64Array, padded: string, weight: number): void {
  for (let from = 0; from + SHORTEST <= padded.length; from++) {
    let h = SEED;
    const to = Math.min(padded.length, from + LONGEST);
    for (let i = from; i < to; i++) {
      h = hashStep(h, padded.charCodeAt(i));
      if (i - from + 1 >= SHORTEST) add(sums, hashEnd(h), weight);
    }
  }
}

/** Adds a hashed term; one bit of the hash is the sign, so that collisions tend to cancel out rather than add up. */
function add(sums: Float64Array, hash: number, weight: number): void {
  const at = hash & (NGRAM_DIMENSIONS - 1);
  sums[at] = (sums[at] ?? 0) + (hash >>> 31 === 0 ? weight : -weight);
}

/** Dampens frequent n-grams, and scales the largest component to `LARGEST`. */
function scaled(sums: Float64Array): Float32Array {
  let largest = 0;
  for (let i = 0; i < sums.length; i++) largest = Math.max(largest, Math.abs(sums[i] ?? 0));
  if (largest === 0) return new Float32Array(sums.length);
  const vector = new Float32Array(sums.length);
  for (let i = 0; i < sums.length; i++) {
    const x = sums[i] ?? 0;
    // `+ 0` turns -0 into 0.
    if (x !== 0) vector[i] = Math.round(Math.sign(x) * Math.sqrt(Math.abs(x) / largest) * LARGEST) + 0;
  }
  return vector;
}

/**
 * The default embedder, which works offline, without a model. `embed` returns n-gram vectors; BM25 has separate
 * columns.
 */
export const lexicalEmbedder: Embedder = Object.freeze({
  model: LEXICAL_MODEL,
  fingerprint: `${LEXICAL_MODEL};porter;bm25 ${K1} ${B};${TERM_SPACE};ngrams 3-5 ${NGRAM_DIMENSIONS};r3`,
  layout: Object.freeze({ kind: 'lexical', dimensions: NGRAM_DIMENSIONS, type: 'halfvec' } as const),
  embed: async (texts: readonly string[]) => texts.map(ngramVector),
  close: async () => {},
});
