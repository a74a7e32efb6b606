import type { RerankProtocol } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { member } from '../http.js';

/** Request to a reranker, independent of its protocol. */
interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly texts: readonly string[];
}

/** Protocol of one kind of reranker, with `POST /rerank` below its URL. */
export interface RerankShape {
  /** Texts of one request. */
  readonly most: number;
  body(request: RerankRequest): unknown;
  /** Objects that say which text they are of, and its score under `score`. */
  items(answer: unknown): unknown;
  readonly score: string;
}

/** More than is ever sent. */
const ALL = 1_000;

const SHAPES: Readonly<Record<RerankProtocol, RerankShape>> = {
  cohere: {
    most: ALL,
    body: ({ model, query, texts }) => ({ model, query, documents: texts, top_n: texts.length }),
    items: (answer) => member(answer, 'results'),
    score: 'relevance_score',
  },
  jina: {
    most: ALL,
    body: ({ model, query, texts }) => ({
      model,
      query,
      documents: texts,
      top_n: texts.length,
      return_documents: false,
    }),
    items: (answer) => member(answer, 'results'),
    score: 'relevance_score',
  },
  voyage: {
    most: ALL,
    body: ({ model, query, texts }) => ({
      model,
      query,
      documents: texts,
      top_k: texts.length,
      return_documents: false,
      truncation: true,
    }),
    items: (answer) => member(answer, 'data'),
    score: 'relevance_score',
  },
  // The server has one model, which it does not want to be told, and takes so many texts unless it is started otherwise.
  tei: {
    most: 32,
    body: ({ query, texts }) => ({ query, texts, raw_scores: false, return_text: false, truncate: true }),
    items: (answer) => answer,
    score: 'score',
  },
};

export function shapeOf(protocol: RerankProtocol): RerankShape {
  return SHAPES[protocol];
}

/**
 * The score of each of `count` texts, in their order.
 *
 * @throws ContentError `malformedAnswer` where there is not one finite number for each
 */
export function scoresIn(answer: unknown, { items, score }: RerankShape, count: number): readonly number[] {
  const list = items(answer);
  if (!Array.isArray(list)) throw malformed('no list of scores');
  if (list.length !== count) throw malformed(`${list.length} scores for ${count} passages`);
  const out: (number | undefined)[] = new Array(count).fill(undefined);
  for (const item of list) {
    const [at, value] = [member(item, 'index'), member(item, score)];
    if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at >= count || out[at] !== undefined)
      throw malformed('indexes that do not number the passages');
    if (typeof value !== 'number' || !Number.isFinite(value)) throw malformed('a score that is no number');
    out[at] = value;
  }
  return out.map((value) => value ?? 0); // each is there: so many, all different
}

/** Tokens that an answer says it cost; not all say it. */
export function tokensIn(answer: unknown): number {
  const tokens = member(member(answer, 'usage'), 'total_tokens');
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

function malformed(what: string): ContentError {
  return new ContentError('malformedAnswer', `it answered ${what}`);
}
