import { type GovernedPlan, type GovernedStore, queryError, type StoredName, stored } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { type LexicalScore, type PageValues, passageOf, type ScoredPassage } from './passage.js';
import { step, type TextRow } from './step.js';

/** Maximum number of words in a query, since each costs a look-up. */
const MAX_TERMS = 128;

/** Error for a query without words, since an empty result would be mistaken for an answer. */
const NO_WORD = Object.freeze({
  detail: '`query` has no word to look for',
  hint: 'signs alone, and words like `the` and `of`, lead to no passage',
});

/** Returns the permitted passages that best match the words of `query`, best first. */
export async function bestByWords(
  store: GovernedStore,
  counts: NonNullable<GovernedStore['counts']>,
  query: string,
  page: PageValues,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  const { content, words } = input.parts;
  const name = store.facet.indexedAs ?? store.facet.name;
  const lexical = await content.lexicalQuery(name, query);
  if (lexical.terms.length === 0) throw queryError('typeMismatch', NO_WORD);
  if (lexical.terms.length > MAX_TERMS)
    throw queryError('tooLarge', { what: 'the number of distinct words in `query`', limit: MAX_TERMS });
  const attempt = async (): Promise<readonly ScoredPassage[] | null> => {
    const counted = await words.count(counts, lexical.terms, epoch, input);
    const frequencies = lexical.terms.map((term) => counted.frequencies.get(term) ?? 0);
    const weightedQuery = lexical.toSparseVector(counted.documents, frequencies);
    if (weightedQuery === null) return words.confirm(name, counts, counted, null, input) ? [] : null;
    const weighedWords = weightedQuery.terms.map(
      (term, i): WeighedWord => ({
        term,
        frequency: counted.frequencies.get(term) ?? 0,
        maxScore: weightedQuery.maxScores[i] ?? Number.POSITIVE_INFINITY,
      }),
    );
    const rows = await new LexicalSearch(store, weightedQuery.vector, page, input).best(
      weighedWords,
      counted.documents,
    );
    const snapshot = rows[0]?.get(stored('snapshot')) ?? null;
    if (!words.confirm(name, counts, counted, snapshot, input)) return null;
    const rare = weightedQuery.terms.map((term, i) => ({ term, rarity: weightedQuery.rarities[i] ?? 0 }));
    const explain = (row: TextRow): LexicalScore => {
      return { by: 'lexical', words: rare, weights: row.get(stored('weights')) ?? null };
    };
    return rows
      .map((row) => ({ ...passageOf(row, store), explanation: explain(row) }))
      .filter(({ score }) => score > 0);
  };
  // Outdated counts have been dropped; the second attempt counts again.
  return (await attempt()) ?? (await attempt()) ?? [];
}

class LexicalSearch {
  readonly #store: GovernedStore;
  readonly #vector: string;
  readonly #page: PageValues;
  readonly #input: RuntimeInput;

  constructor(store: GovernedStore, vector: string, page: PageValues, input: RuntimeInput) {
    this.#store = store;
    this.#vector = vector;
    this.#page = page;
    this.#input = input;
  }

  /** Searches passages with a rare word if they provably include the best; otherwise, those with any of the words. */
  async best(words: readonly WeighedWord[], documents: number): Promise<readonly TextRow[]> {
    const essential = essentialWords(words, documents, this.#page.skip + this.#page.topK);
    if (essential !== null) {
      const rows = await this.#run(this.#store.passages, essential.terms);
      const last = rows[this.#page.topK - 1];
      if (last !== undefined && -Number(last.get(stored('distance'))) > essential.rest) return rows;
    }
    const candidates = words.reduce((sum, { frequency }) => sum + frequency, 0);
    const common = candidates > documents * COMMON_SHARE ? this.#store.commonWords : null;
    return this.#run(
      common ?? this.#store.passages,
      words.map(({ term }) => term),
    );
  }

  async #run(plan: GovernedPlan, terms: readonly number[]): Promise<readonly TextRow[]> {
    const args = new Map([
      ['vector', this.#vector],
      ['terms', `{${terms.join(',')}}`],
      ['limit', String(this.#page.topK)],
      ['offset', String(this.#page.skip)],
    ]);
    return (await step(plan, args, this.#input, this.#page.topK)).rows;
  }
}

interface WeighedWord {
  readonly term: number;
  readonly frequency: number;
  /** Upper bound of the word's contribution to a score. */
  readonly maxScore: number;
}

/** Words that decide a search: if enough of their passages score above `rest`, no other passage is among the best. */
interface EssentialWords {
  readonly terms: readonly number[];
  /** Upper bound of the score of a passage that contains none of the words. */
  readonly rest: number;
}

/** Share of all passages above which words are so common that an index look-up only adds cost. */
const COMMON_SHARE = 0.2;

/** Assumed contribution of a word, relative to its maximum: that of one occurrence in a passage of average length. */
const USUAL_SHARE = 1 / 2.2;

/** Rounding tolerance, since scores are sums of 32-bit floats. */
const ROUNDING = 1 + 1e-4;

/**
 * Selects the smallest set of rarest words that probably determines the best `count` passages; null if searching for
 * these words alone would save little. Like the counts, the choice depends only on permitted passages.
 */
function essentialWords(
  words: readonly WeighedWord[],
  documents: number,
  count: number,
): EssentialWords | null {
  const rarest = [...words].sort((a, b) => a.frequency - b.frequency || a.term - b.term);
  const total = rarest.reduce((sum, word) => sum + word.frequency, 0);
  let rest = rarest.reduce((sum, word) => sum + word.maxScore, 0);
  let passageCount = 0;
  // Probable score of the last of these passages, which likely contains a word this rare.
  let likelyScore: number | null = null;
  for (const [i, { frequency, maxScore }] of rarest.entries()) {
    passageCount += frequency;
    rest -= maxScore;
    if (passageCount > Math.min(total / 2, documents * COMMON_SHARE)) return null;
    if (passageCount >= count) likelyScore ??= maxScore * USUAL_SHARE;
    if (likelyScore !== null && rest * ROUNDING < likelyScore)
      return { terms: rarest.slice(0, i + 1).map((word) => word.term), rest: Math.max(0, rest) * ROUNDING };
  }
  return null;
}

/** Number of candidates in a search by signs (binary quantization): minimum, per requested passage, and maximum. */
const BY_SIGNS = { min: 1_000, perPassage: 40, max: 40_000 };
/** Number of candidates in an index search. If fewer are found, hidden passages used up the index's scan budget. */
const BY_INDEX = { min: 100, perPassage: 4 };

/**
 * Returns the passages nearest to `vector` (in pgvector's text format), best first: exactly min(`topK`, permitted −
 * `skip`). The search method depends only on the number of permitted passages.
 */
export async function nearest(
  store: GovernedStore,
  vector: string,
  page: PageValues,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly TextRow[]> {
  const search = new NearestSearch(vector, page, input);
  const steps = store.nearest;
  if (steps !== null && (await input.parts.permitted.areMany(steps.some, epoch, input))) {
    const rows = (await search.byIndex(steps.byIndex)) ?? (await search.bySigns(steps.bySigns));
    if (rows !== null) return rows;
  }
  return search.run(store.passages);
}

class NearestSearch {
  readonly #vector: string;
  readonly #page: PageValues;
  /** `skip` + `topK`. */
  readonly #k: number;
  readonly #input: RuntimeInput;

  constructor(vector: string, page: PageValues, input: RuntimeInput) {
    this.#vector = vector;
    this.#page = page;
    this.#k = page.skip + page.topK;
    this.#input = input;
  }

  async run(plan: GovernedPlan, candidates = 0): Promise<readonly TextRow[]> {
    const { topK, skip } = this.#page;
    const args = new Map([
      ['vector', this.#vector],
      ['limit', String(topK)],
      ['offset', String(skip)],
      ['candidates', String(candidates)],
    ]);
    return (await step(plan, args, this.#input, topK)).rows;
  }

  /** Searches with the index; null if it returned too few candidates, since permitted passages would be missing. */
  async byIndex(plan: GovernedPlan | null): Promise<readonly TextRow[] | null> {
    if (plan === null) return null;
    const candidates = Math.max(BY_INDEX.min, BY_INDEX.perPassage * this.#k);
    const rows = await this.run(plan, candidates);
    return numberIn(rows[0], 'candidates') >= candidates && !this.#lacksDocuments(rows) ? rows : null;
  }

  /** In a search for documents, true if the candidates belong to fewer documents than wanted. */
  #lacksDocuments(rows: readonly TextRow[]): boolean {
    return this.#page.ofDocuments && rows.length < this.#page.topK;
  }

  /** Searches by the signs of the vectors; null if a passage outside the candidates could be among the best. */
  async bySigns(plan: GovernedPlan): Promise<readonly TextRow[] | null> {
    const { min, perPassage, max } = BY_SIGNS;
    const candidates = Math.max(min, Math.min(perPassage * this.#k, max), this.#k);
    const rows = await this.run(plan, candidates);
    const [first] = rows;
    // Without rows, the page lies beyond the candidates: these are all permitted passages, so none is missing.
    if (first === undefined && !this.#page.ofDocuments) return rows;
    if (first !== undefined && numberIn(first, 'candidates') < candidates) return rows;
    if (this.#lacksDocuments(rows)) return null;
    const maxSigns = maxDifferingSigns(numberIn(rows.at(-1), 'distance'), this.#vector.split(',').length);
    return maxSigns <= numberIn(first, 'farthest') ? rows : null;
  }
}

function numberIn(row: TextRow | undefined, name: StoredName): number {
  return Number(row?.get(stored(name)) ?? Number.NaN);
}

/** Tolerance in standard deviations; see `maxDifferingSigns`. */
const TOLERANCE = 2.5;

/**
 * Upper bound (99 %) for the number of signs that differ between two vectors with this cosine distance. Each sign
 * differs with probability angle / π.
 */
function maxDifferingSigns(distance: number, width: number): number {
  const p = Math.acos(Math.min(1, Math.max(-1, 1 - distance))) / Math.PI;
  return width * p + TOLERANCE * Math.sqrt(width * p * (1 - p));
}
