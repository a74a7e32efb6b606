import { hash32, hashEnd, hashStep } from './terms.js';

export const NGRAM_DIMENSIONS = 1024;

const SHORTEST = 3;
const LONGEST = 5;
const SEED = 0x9747b28c;
const WORD_SEED = 0x1b873593;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
const PLACES = 1e6;

/**
 * Hashed character 3- to 5-grams and words, of unit norm and rounded to 6 decimals. It knows nothing of the
 * corpus: equal texts have equal vectors in every store.
 *
 * @returns 1024 floats; all 0 for a text without a letter or digit
 */
export function ngramVector(text: string): Float32Array {
  const counts = new Map<number, number>();
  for (const [word] of text.normalize('NFKC').toLowerCase().matchAll(WORD)) {
    addTo(counts, hash32(word, WORD_SEED));
    addGrams(counts, `<${word}>`);
  }
  const sums = new Float64Array(NGRAM_DIMENSIONS);
  for (const [hash, count] of counts) {
    const at = hash & (NGRAM_DIMENSIONS - 1);
    // Another bit of the hash gives the sign, so that collisions cancel instead of adding up.
    sums[at] = (sums[at] ?? 0) + (hash >>> 31 === 0 ? 1 : -1) * Math.sqrt(count);
  }
  return rounded(sums);
}

function addGrams(counts: Map<number, number>, padded: string): void {
  for (let from = 0; from + SHORTEST <= padded.length; from++) {
    let h = SEED;
    const to = Math.min(padded.length, from + LONGEST);
    for (let i = from; i < to; i++) {
      h = hashStep(h, padded.charCodeAt(i));
      if (i - from + 1 >= SHORTEST) addTo(counts, hashEnd(h));
    }
  }
}

function addTo(counts: Map<number, number>, hash: number): void {
  counts.set(hash, (counts.get(hash) ?? 0) + 1);
}

function rounded(sums: Float64Array): Float32Array {
  let squares = 0;
  for (const x of sums) squares += x * x;
  const norm = Math.sqrt(squares);
  const out = new Float32Array(sums.length);
  if (norm === 0) return out;
  for (let i = 0; i < sums.length; i++) out[i] = Math.round(((sums[i] ?? 0) / norm) * PLACES) / PLACES;
  return out;
}
