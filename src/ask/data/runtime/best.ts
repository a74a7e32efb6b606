import type { GovernedStore } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { unlessStopped } from '../question.js';
import { bestByWords } from './lexical-lane.js';
import { nearest } from './nearest.js';
import type { FoundPassage, PageValues } from './page.js';
import { passageOf } from './passage.js';

const BY_DISTANCE = Object.freeze({ by: 'dense' } as const);

/** Name of a facet, or of one of its legs, in the content plane. */
export function indexName({ facet }: GovernedStore): string {
  return facet.indexedAs ?? facet.name;
}

/** Best permitted passages of one store, best first. */
export async function best(
  store: GovernedStore,
  query: string,
  page: PageValues,
  input: RuntimeInput,
): Promise<readonly FoundPassage[]> {
  const { content } = input.parts;
  const name = indexName(store);
  const { epoch, indexedAt } = await unlessStopped(content.ready(name, store.version), input.signal);
  input.indexes.add(store.facet.name, indexedAt);
  const { counts } = store;
  if (counts !== null) return bestByWords(store, counts, query, page, epoch, input);
  const rows = await nearest(store, await embedded(store, query, input), page, epoch, input);
  return rows.map((row) => ({ ...passageOf(row, store), why: BY_DISTANCE }));
}

/** Embedding of the query for a dense store. */
export function embedded(store: GovernedStore, query: string, input: RuntimeInput): Promise<string> {
  return unlessStopped(input.parts.content.embedQuery(indexName(store), query), input.signal);
}
