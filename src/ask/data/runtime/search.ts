import { arrayText, type GovernedStore, type Legs, queryError, type Retrieval } from 'osl-compiler';
import type { OperatorCall, StoredPassage } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { unlessStopped } from '../question.js';
import { arrayValue, elements } from './constants.js';
import { bestByWords, nearest } from './leg-search.js';
import {
  aboveMinScore,
  byChunkId,
  type LegShare,
  type PageValues,
  passageOf,
  type ScoredPassage,
} from './passage.js';
import { operatorCallerOf, step } from './step.js';

interface Stores {
  readonly dense: GovernedStore;
  readonly lexical: GovernedStore;
}

/** The passages found by one leg (lexical or dense) of a hybrid search, best first. */
interface LegResult extends Pick<LegShare, 'leg' | 'weight'> {
  readonly passages: readonly ScoredPassage[];
}

/** Minimum number of passages that each leg contributes to the fusion. */
const MIN_DEPTH = 100;
/** Maximum offset of a page; pages further down would require sorting whole stores. */
const MAX_HYBRID_SKIP = 1_000;
/** The constant k of reciprocal rank fusion. Larger values give less weight to the first ranks. */
const RANK_CONSTANT = 60;

/**
 * Hybrid search: fuses the best 2 × (`skip` + `topK`) passages of each leg, at least 100, into one order, breaking ties
 * by chunk id, and returns the requested page, with passages of the dense store. Both legs return only permitted
 * passages, so hidden ones affect no rank or score.
 *
 * @throws QueryError E0511
 */
export async function hybridSearch(
  { legs }: Retrieval,
  stores: Stores,
  query: string,
  page: PageValues,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (page.skip > MAX_HYBRID_SKIP) {
    const detail = `\`skip\` is a whole number from 0 to ${MAX_HYBRID_SKIP} where two legs are fused`;
    throw queryError('typeMismatch', { detail, hint: "mode => 'lexical' and mode => 'dense' go further" });
  }
  const [lexicalWeight, denseWeight] = weightsOf(legs, input);
  const topK = Math.max(MIN_DEPTH, 2 * (page.skip + page.topK));
  const fullPage: PageValues = { ...page, topK, skip: 0, minScore: null };
  const { name, indexedAs = name } = stores.lexical.facet;
  const words = await input.parts.content.lexicalQuery(indexedAs, query);
  const lexicalHits = words.terms.length > 0 ? await searchStore(stores.lexical, query, fullPage, input) : [];
  const denseHits = await searchStore(stores.dense, query, fullPage, input);
  const keyOf = (p: ScoredPassage): string => (page.ofDocuments ? p.docId : p.chunkId);
  const legResults = [
    { leg: 'lexical', passages: lexicalHits, weight: lexicalWeight },
    { leg: 'dense', passages: denseHits, weight: denseWeight },
  ] as const;
  const ranked = aboveMinScore(fuseLegs(legResults, legs, keyOf), page);
  return toDense(pageOf(ranked, page), denseHits, stores.dense, query, input);
}

function pageOf<P>(ranked: readonly P[], { skip, topK }: PageValues): readonly P[] {
  return ranked.slice(skip, skip + topK);
}

/** Returns the weights of the lexical and the dense leg. */
function weightsOf(legs: Legs, input: RuntimeInput): readonly [number, number] {
  if (legs.mode !== 'hybrid' || legs.weights === null) return [1, 1];
  const [a = Number.NaN, b = Number.NaN, ...more] = elements(arrayValue(legs.weights, input)).map(Number);
  if (more.length === 0 && [a, b].every((w) => w >= 0 && Number.isFinite(w)) && a + b > 0) return [a, b];
  const detail = '`weights` are two numbers, 0 or more and not both 0: of the lexical leg and of the dense';
  throw queryError('typeMismatch', { detail, hint: 'weights => array[0.3, 0.7]' });
}

/** Fuses the legs' results. Passages with the same key add up their shares; the one with the largest share is kept. */
function fuseLegs(
  results: readonly LegResult[],
  legs: Legs,
  keyOf: (p: ScoredPassage) => string,
): readonly ScoredPassage[] {
  const fuse = legs.mode === 'hybrid' ? legs.fuse : 'rank';
  const byKey = new Map<string, LegShare[]>();
  for (const [at, { leg, passages, weight }] of results.entries()) {
    const shares = fuse === 'score' ? byScores(passages) : byRanks(passages);
    for (const [i, passage] of passages.entries()) {
      const legShares = byKey.get(keyOf(passage)) ?? results.map(withoutShare);
      legShares[at] = { leg, weight, match: { passage, rank: i + 1 }, share: weight * (shares[i] ?? 0) };
      byKey.set(keyOf(passage), legShares);
    }
  }
  return [...byKey.values()]
    .flatMap((shares): readonly ScoredPassage[] => {
      const score = shares.reduce((sum, { share }) => sum + share, 0);
      const passage = topPassage(shares);
      return passage === null
        ? []
        : [{ ...passage, score, explanation: { by: 'hybrid', fuse, legs: shares } }];
    })
    .sort((a, b) => b.score - a.score || byChunkId(a, b));
}

function withoutShare({ leg, weight }: LegResult): LegShare {
  return { leg, weight, match: null, share: 0 };
}

/** Returns the passage of the leg with the largest share, or of the first such leg; null if no leg found a passage. */
function topPassage(shares: readonly LegShare[]): ScoredPassage | null {
  const [top] = shares.filter(({ match }) => match !== null).sort((a, b) => b.share - a.share);
  return top?.match?.passage ?? null;
}

/** Returns the scores of reciprocal rank fusion. */
function byRanks(passages: readonly ScoredPassage[]): readonly number[] {
  return passages.map((_, i) => 1 / (RANK_CONSTANT + i + 1));
}

/** Returns min-max normalized scores; all 1 if the passages score equally. */
function byScores(passages: readonly ScoredPassage[]): readonly number[] {
  const [best, last] = [passages[0]?.score ?? 0, passages.at(-1)?.score ?? 0];
  return passages.map(({ score }) => (best === last ? 1 : (score - last) / (best - last)));
}

/** Replaces passages by their versions in the dense store and drops those missing there. */
async function toDense(
  ranked: readonly ScoredPassage[],
  denseHits: readonly ScoredPassage[],
  store: GovernedStore,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  const byId = new Map<string, StoredPassage>(denseHits.map((p) => [p.chunkId, p]));
  const ids = ranked.filter((p) => !byId.has(p.chunkId)).map((p) => p.chunkId);
  if (ids.length > 0 && store.named !== null) {
    const args = new Map([
      ['ids', arrayText(ids)],
      ['vector', await embedQuery(store, query, input)],
      ['limit', String(ids.length)],
    ]);
    const { rows } = await step(store.named, args, input, ids.length);
    for (const row of rows) {
      const passage = passageOf(row, store);
      byId.set(passage.chunkId, passage);
    }
  }
  return ranked.flatMap(({ chunkId, score, explanation }) => {
    const passage = byId.get(chunkId);
    return passage === undefined ? [] : [{ ...passage, score, explanation }];
  });
}

const BY_DISTANCE = Object.freeze({ by: 'dense' } as const);

/** Returns the name of a facet, or of one of its legs, in the content plane. */
export function indexName({ facet }: GovernedStore): string {
  return facet.indexedAs ?? facet.name;
}

/** Returns the best permitted passages of a store, best first. */
export async function searchStore(
  store: GovernedStore,
  query: string,
  page: PageValues,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  const { content } = input.parts;
  const name = indexName(store);
  const { epoch, indexedAt, since } = await unlessStopped(content.ready(name, store.version), input.signal);
  input.standby.requireCommitted(since);
  input.indexes.add(store.facet.name, indexedAt);
  const { counts } = store;
  if (counts !== null) return bestByWords(store, counts, query, page, epoch, input);
  const rows = await nearest(store, await embedQuery(store, query, input), page, epoch, input);
  return rows.map((row) => ({ ...passageOf(row, store), explanation: BY_DISTANCE }));
}

/** Returns the embedding of the query for a dense store. */
function embedQuery(store: GovernedStore, query: string, input: RuntimeInput): Promise<string> {
  input.usage.addEmbedded(query);
  return unlessStopped(input.parts.content.embedQuery(indexName(store), query), input.signal);
}

type Rerank = NonNullable<Retrieval['rerank']>;

/**
 * Returns the page of candidates for the reranker: the best passages of the search.
 *
 * @throws QueryError E0511 if the requested page extends beyond the candidates
 */
export function candidatesOf(page: PageValues, { name, candidates }: Rerank): PageValues {
  if (page.skip + page.topK > candidates) {
    const detail = `\`skip\` and \`top_k\` are together ${candidates} at most where \`${name}\` orders the passages`;
    throw queryError('typeMismatch', { detail, hint: 'it is sent no more of the best passages' });
  }
  return { ...page, skip: 0, topK: candidates, minScore: null };
}

/**
 * Reorders `pool` by the reranker's scores (ties keep the search order) and returns the requested page. The reranker
 * gets only texts that the caller would see.
 */
export async function rerankPool(
  pool: readonly ScoredPassage[],
  page: PageValues,
  { name }: Rerank,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (pool.length === 0) return pool;
  const { caller, signal, usage, parts } = input;
  const rerankCaller = { subject: caller.identity.subject, signal, onUsage: usage.addReranked.bind(usage) };
  const texts = pool.map((p) => p.text);
  const scores = await parts.content.rerank(name, query, texts, rerankCaller);
  const scored = pool.map((passage, i): ScoredPassage => {
    const before = { passage, rank: i + 1 };
    return { ...passage, score: scores[i] ?? 0, explanation: { by: 'reranker', reranker: name, before } };
  });
  const ordered = scored.sort((a, b) => b.score - a.score);
  return pageOf(aboveMinScore(ordered, page), page);
}

/** Pool size for diversification: `perPassage` times the number of requested passages, but at least `min`. */
const POOL = { perPassage: 4, min: 50 };

/** Maximum `skip` + `top_k` with diversification, which takes quadratic time. */
const MAX_DIVERSE = 250;

/** Returns the page of candidates for diversification. @throws QueryError E0511 if the requested page is too large */
export function poolOf(page: PageValues): PageValues {
  if (page.diversity === null) return page;
  const count = page.skip + page.topK;
  if (count > MAX_DIVERSE) {
    const detail = `\`skip\` and \`top_k\` are together ${MAX_DIVERSE} at most where \`diversity\` is asked for`;
    throw queryError('typeMismatch', { detail, hint: null });
  }
  return { ...page, skip: 0, topK: Math.max(POOL.min, POOL.perPassage * count) };
}

/** Reorders `pool` by RANK, which penalizes similarity to earlier passages, and returns the requested page. */
export async function diversify(
  pool: readonly ScoredPassage[],
  page: PageValues,
  store: GovernedStore,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (page.diversity === null || pool.length === 0) return pool;
  const sorted = [...pool].sort(byChunkId);
  const { content } = input.parts;
  const caller = operatorCallerOf(input);
  const { values } = await content.run(indexName(store), rankCall(1 - page.diversity), query, sorted, caller);
  const ranks = new Map(sorted.map((p, i) => [p, Number(values[i])]));
  const diversified = [...sorted].sort((a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  return pageOf(diversified, page);
}

function rankCall(lambda: number): OperatorCall {
  const use = { operator: 'RANK', column: '#diverse', type: 'int4', arguments: new Map() } as const;
  return { use, values: new Map([['lambda', lambda]]) };
}
