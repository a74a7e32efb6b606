import { ngramVector } from '../../src/content/embed/lexical-v1.js';
import { inverseFrequency } from '../../src/content/index.js';
import { cosine } from '../../test/content/reference.js';

/** Ranks texts for a query: their indexes, best first, without those of score 0. */
export type Ranker = (query: string) => readonly number[];

/** Simple BM25: words in lower case, exact average length, no hashing. */
export function plainBm25(texts: readonly string[], k1 = 1.2, b = 0.75): Ranker {
  const documents = texts.map(countWords);
  const average = documents.reduce((sum, d) => sum + d.length, 0) / Math.max(1, documents.length);
  const frequency = new Map<string, number>();
  for (const { counts } of documents)
    for (const w of counts.keys()) frequency.set(w, (frequency.get(w) ?? 0) + 1);
  return (query) => {
    const words = [...countWords(query).counts];
    return ranked(documents, ({ counts, length }) => {
      let score = 0;
      for (const [word, times] of words) {
        const f = counts.get(word) ?? 0;
        if (f === 0) continue;
        const idf = inverseFrequency(texts.length, frequency.get(word) ?? 0);
        score += (times * idf * f * (k1 + 1)) / (f + k1 * (1 - b + (b * length) / average));
      }
      return score;
    });
  };
}

function countWords(text: string): { readonly counts: ReadonlyMap<string, number>; readonly length: number } {
  const counts = new Map<string, number>();
  let length = 0;
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
    length++;
  }
  return { counts, length };
}

/** Cosine of the hashed n-grams that `lexical-v1` stores for the operators. */
export function ngramCosine(texts: readonly string[]): Ranker {
  const vectors = texts.map(ngramVector);
  return (query) => {
    const vector = ngramVector(query);
    return ranked(vectors, (v) => cosine(v, vector));
  };
}

function ranked<T>(items: readonly T[], score: (item: T) => number): readonly number[] {
  return items
    .map((item, place) => ({ place, score: score(item) }))
    .filter((r) => r.score > 0)
    .sort((a, b) => b.score - a.score || a.place - b.place)
    .map((r) => r.place);
}
