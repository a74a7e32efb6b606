import { ANY_LANGUAGE, type WordRules } from '../../src/base/text/terms.js';
import { lexicalQuery, type TermCounts, termsOf } from '../../src/content/index.js';
import { averageLength, lexicalWeights, measuredLength } from '../../src/content/lexical/bm25.js';
import { wordRules } from '../../src/content/lexical/languages/word-rules.js';
import { type Measure, measure } from '../report.js';
import { skipped } from './chunk-spans.js';
import { bankingData, missingData } from './data.js';

const BEST = 10;
/** Default chunk size in characters: each text fits into one chunk with room to spare. */
const MAX_CHARS = 1_200;

/**
 * Ranking quality of the lexical lane for short texts that are whole documents: with the average length measured when a
 * store is built, compared with one guessed from the chunk size. A hit is a text with the query's intent. Repeated with
 * a facet that declares its texts as English.
 */
export async function wholeDocumentsBench(quick: boolean): Promise<readonly Measure[]> {
  const missing = missingData('banking77');
  if (missing !== null) return skipped(missing);
  const { train, test } = bankingData();
  const asked = test.filter((_, i) => i % (quick ? 60 : 6) === 0);
  const gain = (averageOf: (lengths: readonly number[]) => number, rules = ANY_LANGUAGE): number => {
    const texts = train.map(({ text }) => termsOf(text, rules));
    const best = ranker(texts, averageOf(texts.map((t) => t.length)), rules);
    const gains = asked.map(({ text, label }) => gainOf(best(text).map((i) => train[i]?.label === label)));
    return gains.reduce((sum, g) => sum + g, 0) / gains.length;
  };
  const ofTexts = (lengths: readonly number[]): number => measuredLength(lengths, MAX_CHARS);
  const measured = gain(ofTexts);
  const guessed = gain(() => averageLength(MAX_CHARS));
  const english = gain(ofTexts, await wordRules('english'));
  const against = `the average length guessed from the size of a chunk: ${guessed.toFixed(4)}`;
  const found = measure('banking77.whole_documents.ndcg_at_10', '', [measured], against, measured / guessed);
  const without = `without a language: ${measured.toFixed(4)}`;
  const named = measure(
    'banking77.whole_documents.english.ndcg_at_10',
    '',
    [english],
    without,
    english / measured,
  );
  return [found, named].map((m) => ({ ...m, n: asked.length }));
}

/** Ranks texts for a query: their indexes, best first. */
function ranker(
  texts: readonly TermCounts[],
  average: number,
  rules: WordRules,
): (query: string) => readonly number[] {
  const held = new Map<number, (readonly [place: number, weight: number])[]>();
  for (const [place, terms] of texts.entries()) {
    for (const [id, weight] of entries(lexicalWeights(terms, average))) {
      const list = held.get(id) ?? [];
      list.push([place, weight]);
      held.set(id, list);
    }
  }
  const documentFrequency = (id: number): number => held.get(id)?.length ?? 0;
  return (text) => {
    const query = lexicalQuery(termsOf(text, rules), { documents: texts.length, documentFrequency });
    const scores = new Map<number, number>();
    for (const [id, weight] of entries(query?.vector ?? '{}'))
      for (const [place, own] of held.get(id) ?? [])
        scores.set(place, (scores.get(place) ?? 0) + weight * own);
    const best = [...scores].sort(([a, x], [b, y]) => y - x || a - b);
    return best.slice(0, BEST).map(([place]) => place);
  };
}

/** Parses the text form of a sparse vector. */
function entries(sparse: string): readonly (readonly [id: number, weight: number])[] {
  return [...sparse.matchAll(/(\d+):([\d.e-]+)/g)].map((m) => [Number(m[1]), Number(m[2])]);
}

/** Rank-discounted gain, as a fraction of the gain of ten hits. */
function gainOf(hits: readonly boolean[]): number {
  const places = Array.from({ length: BEST }, (_, i) => 1 / Math.log2(i + 2));
  const all = places.reduce((sum, p) => sum + p, 0);
  return places.reduce((sum, p, i) => sum + (hits[i] === true ? p : 0), 0) / all;
}
