import { queryError, type Retrieval } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { goodEnough, type PageValues } from './page.js';
import type { FoundPassage } from './why.js';

type Rerank = NonNullable<Retrieval['rerank']>;

/**
 * The page of passages that a reranker is sent: the best by the search, whichever page of its own order is wanted.
 *
 * @throws QueryError E0511 where the page would be one of passages that it is not sent
 */
export function candidatesOf(page: PageValues, { name, candidates }: Rerank): PageValues {
  if (page.skip + page.topK > candidates) {
    const detail = `\`skip\` and \`top_k\` are together ${candidates} at most where \`${name}\` orders the passages`;
    throw queryError('typeMismatch', { detail, hint: 'it is sent no more of the best passages' });
  }
  return { ...page, skip: 0, topK: candidates, minScore: null };
}

/**
 * The page out of `pool`, which the search gives best first: by the scores of the reranker, which are those that are
 * shown and that a floor looks at; ties stay in the order of the search. It sees the texts that the caller would see.
 */
export async function reranked(
  pool: readonly FoundPassage[],
  page: PageValues,
  { name }: Rerank,
  query: string,
  input: RuntimeInput,
): Promise<readonly FoundPassage[]> {
  if (pool.length === 0) return pool;
  const { caller, signal, spending, parts } = input;
  const by = { subject: caller.identity.subject, signal, spend: spending.addReranked.bind(spending) };
  const texts = pool.map((p) => p.text);
  const scores = await parts.content.rerank(name, query, texts, by);
  const scored = pool.map((passage, i): FoundPassage => {
    const found = { passage, rank: i + 1 };
    return { ...passage, score: scores[i] ?? 0, why: { by: 'reranker', reranker: name, found } };
  });
  const ordered = scored.sort((a, b) => b.score - a.score);
  return goodEnough(ordered, page).slice(page.skip, page.skip + page.topK);
}
