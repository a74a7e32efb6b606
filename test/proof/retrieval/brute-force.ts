import { STOP_WORDS } from './world.js';

/**
 * What RETRIEVE is to answer, worked out from the passages that the caller may see, by the sentences of
 * docs/retrieval.md and with no line of the product.
 */

/** A passage that the caller may see. */
export interface Passage {
  readonly chunk: string;
  readonly document: string;
  readonly article: number;
  readonly lang: string;
  readonly text: string;
  /** What operators compare in the lexical lane. */
  readonly grams: readonly number[];
  /** What the model makes of the text; none in a facet of words alone. */
  readonly meaning: readonly number[];
}

/** A query, and its vectors. */
export interface Query {
  readonly text: string;
  readonly grams: readonly number[];
  readonly meaning: readonly number[];
}

/** What a RETRIEVE asks for; null is an argument that is left out. */
export interface Wanted {
  readonly topK: number;
  readonly skip: number | null;
  readonly minScore: number | null;
  readonly per: 'passage' | 'document' | null;
  readonly diversity: number | null;
  readonly mode: 'hybrid' | 'lexical' | 'dense' | null;
  readonly fuse: 'rank' | 'score' | null;
  readonly weights: readonly [number, number] | null;
}

export interface Scored {
  readonly passage: Passage;
  readonly score: number;
}

/** Two scores are nearer than floats of 32 bits tell apart: nobody can say here which passage is first. */
export class Doubt extends Error {}

const RANK_CONSTANT = 60;
/** How well scores are known that are spread between a best and a last which lie at least so far apart. */
const [SCORE_ERROR, LEAST_SPREAD] = [2e-5, 0.1];
const [K1, B] = [1.2, 0.75];

/** @param average what BM25 divides lengths by */
export function bruteForce(
  passages: readonly Passage[],
  query: Query,
  wanted: Wanted,
  lane: 'hybrid' | 'lexical',
  average: number,
): readonly Scored[] {
  const [skip, mode] = [wanted.skip ?? 0, wanted.mode ?? lane];
  const end = skip + wanted.topK;
  const pool = wanted.diversity === null ? end : Math.max(50, 4 * end);
  const one = (leg: 'lexical' | 'dense'): readonly Scored[] => {
    const all = leg === 'lexical' ? byWords(passages, query, average) : byMeaning(passages, query);
    const best = ordered(all, leg === 'lexical' ? 1e-5 : 1e-6);
    return wanted.per === 'document' ? firstOfEach(best) : best;
  };
  const depth = Math.max(100, 2 * pool);
  const found =
    mode === 'hybrid'
      ? fused([one('lexical').slice(0, depth), one('dense').slice(0, depth)], wanted)
      : one(mode);
  const isExact = mode === 'hybrid' && wanted.fuse !== 'score';
  const good = wanted.minScore === null ? found : atLeast(found, wanted.minScore, isExact);
  if (wanted.diversity === null) return good.slice(skip, end);
  const vectors = mode === 'lexical' ? 'grams' : 'meaning';
  return diverse(good.slice(0, pool), query, vectors, 1 - wanted.diversity).slice(skip, end);
}

/** Words in small letters; of one with a digit in it the parts count too. */
export function wordsOf(text: string): readonly string[] {
  return (text.match(/[a-z0-9]+/gi) ?? []).flatMap((word) => {
    const small = word.toLowerCase();
    const parts =
      /\d/.test(word) || /[a-z][A-Z]/.test(word) ? (word.match(/[A-Z]?[a-z]+|[A-Z]+|\d+/g) ?? []) : [];
    const whole = STOP_WORDS.includes(small) ? [] : [small];
    return parts.length < 2
      ? whole
      : [...whole, ...parts.filter((p) => p.length > 1).map((p) => p.toLowerCase())];
  });
}

/** The mean, to the next power of the square root of two. */
export function averageLength(lengths: readonly number[]): number {
  const mean = lengths.reduce((sum, n) => sum + n, 0) / lengths.length;
  return Math.SQRT2 ** Math.round(Math.log(mean) / Math.log(Math.SQRT2));
}

interface Sorted extends Scored {
  /** The same for two passages whose scores are the same, however they are added up. */
  readonly sign: string;
}

/** BM25 with the statistics of these passages alone; those without a word of the query are not found. */
function byWords(passages: readonly Passage[], query: Query, average: number): readonly Sorted[] {
  const texts = passages.map(({ text }) => wordsOf(text));
  const asked = new Map<string, number>();
  for (const word of wordsOf(query.text)) asked.set(word, (asked.get(word) ?? 0) + 1);
  const weights = [...asked].map(([word, count]) => {
    const holding = texts.filter((words) => words.includes(word)).length;
    return { word, weight: count * Math.log(1 + (passages.length - holding + 0.5) / (holding + 0.5)) };
  });
  return passages.flatMap((passage, i) => {
    const words = texts[i] ?? [];
    const shares = weights.flatMap(({ word, weight }) => {
      const times = words.filter((w) => w === word).length;
      if (times === 0) return [];
      const share = (weight * times * (K1 + 1)) / (times + K1 * (1 - B + (B * words.length) / average));
      return [{ word, share }];
    });
    if (shares.length === 0) return [];
    // Two shares have the same sum in either order. More are added in an order that depends on their words.
    const sign =
      shares.length > 2
        ? shares.map(({ word, share }) => `${word} ${share}`).join(' ')
        : shares
            .map(({ share }) => share)
            .sort()
            .join(' ');
    return [{ passage, score: shares.reduce((sum, { share }) => sum + share, 0), sign }];
  });
}

function byMeaning(passages: readonly Passage[], query: Query): readonly Sorted[] {
  return passages.map((passage) => {
    return { passage, score: cosine(passage.meaning, query.meaning), sign: passage.text };
  });
}

function cosine(a: readonly number[], b: readonly number[]): number {
  let [product, first, second] = [0, 0, 0];
  for (const [i, x] of a.entries()) {
    const y = b[i] ?? 0;
    product += x * y;
    first += x * x;
    second += y * y;
  }
  return first * second === 0 ? 0 : product / Math.sqrt(first * second);
}

/** Best first, equal ones by chunk id. */
function ordered(all: readonly Sorted[], error: number): readonly Scored[] {
  const best = [...all].sort((a, b) => (a.sign === b.sign ? 0 : b.score - a.score) || byChunk(a, b));
  for (const [i, after] of best.entries()) {
    const before = best[i - 1];
    if (before !== undefined && before.sign !== after.sign && before.score - after.score < error)
      throw new Doubt('two scores are next to equal');
  }
  return best;
}

function byChunk(a: Scored, b: Scored): number {
  return a.passage.chunk < b.passage.chunk ? -1 : 1;
}

function firstOfEach(best: readonly Scored[]): readonly Scored[] {
  const seen = new Set<string>();
  return best.filter(({ passage }) => !seen.has(passage.document) && seen.add(passage.document));
}

/** The lexical leg and the dense one in one order. */
function fused(legs: readonly (readonly Scored[])[], wanted: Wanted): readonly Scored[] {
  // Ranks are known exactly, scores as floats of 32 bits know them.
  const error = wanted.fuse === 'score' ? SCORE_ERROR : 1e-12;
  const isNear = (a: number, b: number): boolean => a !== b && Math.abs(a - b) < error;
  const keyOf = ({ passage }: Scored): string =>
    wanted.per === 'document' ? passage.document : passage.chunk;
  const entries = legs.flatMap((leg, i) => {
    const [best, last] = [leg[0]?.score ?? 0, leg.at(-1)?.score ?? 0];
    if (wanted.fuse === 'score' && best > last && best - last < LEAST_SPREAD)
      throw new Doubt('the scores of a leg are next to equal');
    return leg.map((one, rank) => {
      const height = best === last ? 1 : (one.score - last) / (best - last);
      const share = wanted.fuse === 'score' ? height : 1 / (RANK_CONSTANT + rank + 1);
      return { key: keyOf(one), passage: one.passage, share: share * (wanted.weights?.[i] ?? 1) };
    });
  });
  const all = [...new Set(entries.map(({ key }) => key))].map((key): Scored => {
    const parts = entries.filter((e) => e.key === key);
    const [first, second] = parts;
    if (first === undefined) throw new Error('a key of nothing');
    const isSecond = second !== undefined && second.share > first.share;
    if (second !== undefined && first.passage !== second.passage && isNear(first.share, second.share))
      throw new Doubt('either leg counts as much');
    return {
      passage: isSecond ? second.passage : first.passage,
      score: parts.reduce((sum, { share }) => sum + share, 0),
    };
  });
  const best = all.sort((a, b) => b.score - a.score || byChunk(a, b));
  if (best.some((one, i) => isNear(best[i - 1]?.score ?? Infinity, one.score)))
    throw new Doubt('two fused scores are next to equal');
  return best;
}

/** @param isExact whether scores are known to the last digit, so that a floor may be one of them */
function atLeast(found: readonly Scored[], floor: number, isExact: boolean): readonly Scored[] {
  if (!isExact && found.some(({ score }) => Math.abs(score - floor) < SCORE_ERROR))
    throw new Doubt('a score is next to the floor');
  return found.filter(({ score }) => Math.round(score * 1e6) / 1e6 >= floor);
}

/** Maximal marginal relevance. */
function diverse(
  pool: readonly Scored[],
  query: Query,
  vectors: 'grams' | 'meaning',
  lambda: number,
): readonly Scored[] {
  const left = [...pool].sort(byChunk).map((one) => {
    return { one, near: cosine(one.passage[vectors], query[vectors]), like: [] as number[] };
  });
  const chosen: Scored[] = [];
  while (left.length > 0) {
    const worth = left.map(
      ({ near, like }) => lambda * near - (1 - lambda) * (like.length === 0 ? 0 : Math.max(...like)),
    );
    const most = Math.max(...worth);
    // Alike for their texts they are equal there too; alike by chance, or for one before that is what was asked, they
    // are not: numbers of 32 bits decide.
    const near = left.filter((_, i) => (worth[i] ?? 0) > most - 2e-6).map(({ one }) => one.passage.text);
    if (new Set(near).size > 1) throw new Doubt('two are worth next to the same');
    const [next] = left.splice(
      worth.findIndex((w) => w > most - 1e-9),
      1,
    );
    if (next === undefined) throw new Error('nothing is worth the most');
    chosen.push(next.one);
    for (const other of left) other.like.push(cosine(other.one.passage[vectors], next.one.passage[vectors]));
  }
  return chosen;
}
