import { type GovernedStore, queryError } from 'osl-compiler';
import type { OperatorCall } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { indexName } from './best.js';
import type { PageValues } from './page.js';
import type { FoundPassage } from './why.js';

/** Of so many passages, for each that is wanted, the order is made; and of so many at least. */
const POOL = { each: 4, least: 50 };
/** Each place of the order looks at all passages that have none yet. */
const MOST_WANTED = 250;

/**
 * The page whose passages a page of diverse ones is chosen from.
 *
 * @throws QueryError E0511 where it would be too long to be put in order
 */
export function poolOf(page: PageValues): PageValues {
  if (page.diversity === null) return page;
  const wanted = page.skip + page.topK;
  if (wanted > MOST_WANTED) {
    const detail = `\`skip\` and \`top_k\` are together ${MOST_WANTED} at most where \`diversity\` is asked for`;
    throw queryError('typeMismatch', { detail, hint: null });
  }
  return { ...page, skip: 0, topK: Math.max(POOL.least, POOL.each * wanted) };
}

/** The page out of `pool`, best first: in the order of RANK, which takes from a passage what is like one before it. */
export async function diverse(
  pool: readonly FoundPassage[],
  page: PageValues,
  store: GovernedStore,
  query: string,
  input: RuntimeInput,
): Promise<readonly FoundPassage[]> {
  if (page.diversity === null || pool.length === 0) return pool;
  const sorted = [...pool].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content, caps } = input.parts;
  const { signal, until, spending, caller } = input;
  const { subject } = caller.identity;
  const by = { subject, timeoutMs: caps.timeoutMs, until, signal, spend: spending.add.bind(spending) };
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
