import { type GovernedStore, queryError, type Retrieval } from 'osl-compiler';
import type { OperatorCall } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { aboveMinScore, type PageValues, type ScoredPassage } from './page.js';
import { indexName } from './search.js';
import { operatorCallerOf } from './step.js';

type Rerank = NonNullable<Retrieval['rerank']>;

/**
 * The page of candidates for the reranker: the best passages of the search.
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
 * Reorders `pool` by the reranker's scores (ties keep the search order) and takes the page. The reranker gets only
 * texts that the caller would see.
 */
export async function reranked(
  pool: readonly ScoredPassage[],
  page: PageValues,
  { name }: Rerank,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (pool.length === 0) return pool;
  const { caller, signal, spending, parts } = input;
  const by = { subject: caller.identity.subject, signal, spend: spending.addReranked.bind(spending) };
  const texts = pool.map((p) => p.text);
  const scores = await parts.content.rerank(name, query, texts, by);
  const scored = pool.map((passage, i): ScoredPassage => {
    const found = { passage, rank: i + 1 };
    return { ...passage, score: scores[i] ?? 0, why: { by: 'reranker', reranker: name, found } };
  });
  const ordered = scored.sort((a, b) => b.score - a.score);
  return aboveMinScore(ordered, page).slice(page.skip, page.skip + page.topK);
}

/** Pool size for diversification: `each` times the number of passages wanted, but at least `least`. */
const POOL = { each: 4, least: 50 };

/** Limits the size of the page, since diversification takes quadratic time. */
const MOST_WANTED = 250;

/** The page to diversify. @throws QueryError E0511 if it would be too large */
export function poolOf(page: PageValues): PageValues {
  if (page.diversity === null) return page;
  const wanted = page.skip + page.topK;
  if (wanted > MOST_WANTED) {
    const detail = `\`skip\` and \`top_k\` are together ${MOST_WANTED} at most where \`diversity\` is asked for`;
    throw queryError('typeMismatch', { detail, hint: null });
  }
  return { ...page, skip: 0, topK: Math.max(POOL.least, POOL.each * wanted) };
}

/** Reorders `pool` by RANK, which penalizes passages similar to earlier ones, and takes the page. */
export async function diverse(
  pool: readonly ScoredPassage[],
  page: PageValues,
  store: GovernedStore,
  query: string,
  input: RuntimeInput,
): Promise<readonly ScoredPassage[]> {
  if (page.diversity === null || pool.length === 0) return pool;
  const sorted = [...pool].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content } = input.parts;
  const by = operatorCallerOf(input);
  const { values } = await content.run(indexName(store), rankCall(1 - page.diversity), query, sorted, by);
  const places = new Map(sorted.map((p, i) => [p, Number(values[i])]));
  return [...sorted]
    .sort((a, b) => (places.get(a) ?? 0) - (places.get(b) ?? 0))
    .slice(page.skip, page.skip + page.topK);
}

function rankCall(lambda: number): OperatorCall {
  const use = { operator: 'RANK', column: '#diverse', type: 'int4', arguments: new Map() } as const;
  return { use, values: new Map([['lambda', lambda]]) };
}
