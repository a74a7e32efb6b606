import type { RerankProtocol } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import { member } from '../http.js';

interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly texts: readonly string[];
}

/** Protocol of one kind of reranker, with `POST /rerank` below its URL. */
export interface RerankShape {
  /** Maximum number of texts per request. */
  readonly most: number;
  body(request: RerankRequest): unknown;
  /** Objects with the index of their text, and its score in the member named `score`. */
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
  // The server has one model and is not sent its name; by default it accepts 32 texts.
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
 * Score of each of `count` texts, in order.
 *
 * @throws ContentError `malformedAnswer` unless there is one finite number for each
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
  return out.map((value) => value ?? 0); // each is set: `count` distinct indexes
}

/** Number of tokens that an answer reports; 0 if it reports none. */
export function tokensIn(answer: unknown): number {
  const tokens = member(member(answer, 'usage'), 'total_tokens');
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

function malformed(what: string): ContentError {
  return new ContentError('malformedAnswer', `it answered ${what}`);
}
