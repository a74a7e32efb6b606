import { assertNever } from 'osl-compiler';
import type { LexicalQuery } from '../content-plane.js';
import { type LegShare, type LexicalScore, type ScoredPassage, shownScore } from './page.js';

/** The tokenized query. */
export interface WrittenQuery {
  readonly occurrences: LexicalQuery['occurrences'];
  readonly written: Awaited<ReturnType<LexicalQuery['written']>>;
}

/** Breaks down the score of `passage`; at each level the parts add up to the shown score. */
export function scoreParts(passage: ScoredPassage, query: WrittenQuery, ofDocuments: boolean): object {
  const { why } = passage;
  const score = shownScore(passage.score);
  switch (why.by) {
    case 'lexical':
      return { mode: why.by, score, terms: termParts(passage, why, query) };
    case 'dense':
      return { mode: why.by, score, similarity: score };
    case 'hybrid': {
      const parts = addingUp(
        why.legs.map(({ share }) => share),
        score,
      );
      const legs = why.legs.map((leg, i) => legPart(leg, parts[i] ?? 0, query, ofDocuments));
      return { mode: why.by, score, fuse: why.fuse, legs };
    }
    case 'reranker': {
      const { passage: found, rank } = why.found;
      const search = { rank, ...scoreParts(found, query, ofDocuments) };
      return { mode: 'reranked', score, reranker: why.reranker, search };
    }
    default:
      return assertNever(why);
  }
}

function legPart({ leg, weight, found }: LegShare, part: number, query: WrittenQuery, ofDocuments: boolean) {
  if (found === null) return { leg, weight, rank: null, score: null, part };
  const { passage, rank } = found;
  const { why } = passage;
  return {
    leg,
    weight,
    rank,
    score: shownScore(passage.score),
    part,
    // The legs may have found different passages of a document.
    ...(ofDocuments ? { chunk_id: passage.chunkId } : {}),
    ...(why.by === 'lexical' ? { terms: termParts(passage, why, query) } : {}),
  };
}

/** The matched query words, sorted by contribution in descending order, then in query order. */
function termParts({ text, score }: ScoredPassage, { words, weights }: LexicalScore, query: WrittenQuery) {
  const inPassage = weightsOf(weights ?? '');
  const rarities = new Map(words.map(({ term, rarity }) => [term, rarity]));
  const { counts } = query.occurrences(text);
  const matched = [...query.written].flatMap(([id, { term, times }]) => {
    const [weight, rarity] = [inPassage.get(id), rarities.get(id)];
    if (weight === undefined || rarity === undefined) return [];
    return [{ term, query_tf: times, idf: rarity, tf: counts.get(id) ?? 0, part: times * rarity * weight }];
  });
  const parts = addingUp(
    matched.map(({ part }) => part),
    shownScore(score),
  );
  return matched
    .map((m, i) => ({ ...m, idf: shownScore(m.idf), part: parts[i] ?? 0 }))
    .sort((a, b) => b.part - a.part);
}

/** Parses the components of a sparse vector in pgvector's text format, `{1:0.5,7:2}/9`. */
function weightsOf(text: string): ReadonlyMap<number, number> {
  return new Map([...text.matchAll(/(\d+):([^,}]+)/g)].map(([, id, weight]) => [Number(id), Number(weight)]));
}

/** Rounds the parts to six decimals; the largest part absorbs the rounding error. */
function addingUp(parts: readonly number[], total: number): readonly number[] {
  const millionths = parts.map(inMillionths);
  const rest = inMillionths(total) - millionths.reduce((sum, part) => sum + part, 0);
  const largest = millionths.indexOf(Math.max(...millionths));
  return millionths.map((part, i) => shownScore((i === largest ? part + rest : part) / 1e6));
}

function inMillionths(score: number): number {
  return Math.round(shownScore(score) * 1e6);
}
