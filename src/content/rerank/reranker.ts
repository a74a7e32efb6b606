import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { estimatedTokens } from '../../base/token-estimate.js';
import type { RerankProtocol } from '../../model/manifest/index.js';
import { ContentError } from '../content-error.js';
import type { PassageBudget } from '../decode/budget.js';
import { cut } from '../embed/embedder.js';
import { type HttpEndpoint, member, postJson } from '../http.js';

/** A reranker's server and the limits on its use. */
export interface RerankEndpoint extends HttpEndpoint {
  readonly protocol: RerankProtocol;
  readonly model: string;
  /** Maximum number of concurrent requests across all queries. */
  readonly concurrency: number;
  /** Maximum size of the score cache; 0 turns it off. */
  readonly cacheBytes: number;
}

interface RerankSpent {
  readonly passages: number;
  readonly cached: number;
  readonly requests: number;
  readonly tokens: number;
  /** Estimated tokens of requests for which the server reported none. */
  readonly unreportedTokens: number;
}

export interface RerankClient {
  readonly subject: string;
  readonly signal: AbortSignal | null;
  /** Called once with the usage, even if the call is aborted. */
  readonly onUsage: (usage: RerankSpent) => void;
}

/** Maximum length of the texts that are sent, in UTF-16 code units. No reranker reads more. */
const LONGEST = { query: 4_000, passage: 8_000 };

/** One reranker, shared by all queries of this process. */
export class Reranker {
  readonly #endpoint: RerankEndpoint;
  readonly #shape: RerankShape;
  readonly #turns: FairSlots;
  readonly #budget: PassageBudget | null;
  readonly #known: LRUCache<string, readonly number[]> | null;

  /** @param budget null if unlimited */
  constructor(endpoint: RerankEndpoint, budget: PassageBudget | null) {
    this.#endpoint = endpoint;
    this.#shape = shapeOf(endpoint.protocol);
    this.#turns = new FairSlots(endpoint.concurrency);
    this.#budget = budget;
    const { cacheBytes: maxSize } = endpoint;
    const sizeCalculation = (scores: readonly number[]): number => 8 * scores.length + 200;
    this.#known = maxSize === 0 ? null : new LRUCache({ maxSize, sizeCalculation });
  }

  /**
   * Scores the relevance of each text to the query, in order. Either all texts are scored or none.
   *
   * @throws ContentError `endpoint`, `malformedAnswer`, `overBudget`; the reason of `by.signal` if aborted
   */
  async scores(query: string, texts: readonly string[], by: RerankClient): Promise<readonly number[]> {
    const batches = this.#batches(query, texts);
    const asked = batches.filter((batch) => batch.scores === null);
    const wanted = passagesOf(asked);
    const spent = { passages: 0, cached: texts.length - wanted, requests: 0, tokens: 0, unreportedTokens: 0 };
    try {
      await this.#take(by.subject, wanted);
      await this.#askAll(asked, spent, by).finally(() =>
        this.#budget?.giveBack(by.subject, wanted - spent.passages),
      );
    } finally {
      by.onUsage(spent);
    }
    return batches.flatMap((batch) => batch.scores ?? []);
  }

  /**
   * Splits texts into batches, one per request. A batch's cache key covers all of its texts: a model may compare
   * passages, so a score may reveal something about the others, which may belong to another caller.
   */
  #batches(query: string, texts: readonly string[]): readonly Batch[] {
    const { model, url, protocol } = this.#endpoint;
    const asked = cut(query, LONGEST.query);
    const out: Batch[] = [];
    for (let at = 0; at < texts.length; at += this.#shape.most) {
      // Some servers reject empty texts.
      const part = texts.slice(at, at + this.#shape.most).map((text) => cut(text, LONGEST.passage) || ' ');
      const body = this.#shape.body({ model, query: asked, texts: part });
      const key = createHash('sha256')
        .update(JSON.stringify([protocol, url, model, body]))
        .digest('base64');
      out.push({ body, key, passages: part.length, scores: this.#known?.get(key) ?? null });
    }
    return out;
  }

  /**
   * Takes `wanted` passages from the subject's budget.
   *
   * @throws ContentError `overBudget` if the budget grants fewer, because passages can only be ranked together
   */
  async #take(subject: string, wanted: number): Promise<void> {
    if (this.#budget === null || wanted === 0) return;
    const granted = await this.#budget.take(subject, wanted);
    if (granted === wanted) return;
    await this.#budget.giveBack(subject, granted);
    throw new ContentError('overBudget', `${granted} of ${wanted} passages may be sent`);
  }

  /** Sends all batches; the first failure stops the others. */
  async #askAll(batches: readonly Batch[], spent: MutableRerankSpent, by: RerankClient): Promise<void> {
    const failed = new AbortController();
    const signal = by.signal === null ? failed.signal : AbortSignal.any([by.signal, failed.signal]);
    const one = async (batch: Batch): Promise<void> => {
      try {
        await this.#turns.take(by.subject, () => this.#ask(batch, spent, signal), signal);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    };
    const ends = await Promise.allSettled(batches.map(one));
    by.signal?.throwIfAborted();
    failed.signal.throwIfAborted();
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  async #ask(batch: Batch, spent: MutableRerankSpent, signal: AbortSignal): Promise<void> {
    let sent = false;
    const estimate = estimatedTokens(JSON.stringify(batch.body));
    const answer = await postJson(this.#endpoint, '/rerank', batch.body, signal, () => {
      spent.requests += 1;
      spent.unreportedTokens += estimate;
      if (!sent) spent.passages += batch.passages;
      sent = true;
    });
    const tokens = tokensIn(answer);
    if (tokens > 0) spent.unreportedTokens -= estimate;
    spent.tokens += tokens;
    batch.scores = scoresIn(answer, this.#shape, batch.passages);
    this.#known?.set(batch.key, batch.scores);
  }
}

interface Batch {
  readonly body: unknown;
  readonly key: string;
  readonly passages: number;
  scores: readonly number[] | null;
}

type MutableRerankSpent = { -readonly [K in keyof RerankSpent]: RerankSpent[K] };

function passagesOf(batches: readonly Batch[]): number {
  return batches.reduce((sum, batch) => sum + batch.passages, 0);
}

interface RerankRequest {
  readonly model: string;
  readonly query: string;
  readonly texts: readonly string[];
}

/** Protocol of one kind of reranker, which is called by `POST /rerank` relative to its URL. */
export interface RerankShape {
  /** Maximum number of texts per request. */
  readonly most: number;
  body(request: RerankRequest): unknown;
  /** Returns the list of results; each has the `index` of its text, and the score in the member named by `score`. */
  items(answer: unknown): unknown;
  readonly score: string;
}

/** Batch size for servers without a limit: more texts than are ever sent. */
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
  // The server has only one model, so its name is not sent; by default it accepts 32 texts.
  tei: {
    most: 32,
    body: ({ query, texts }) => ({ query, texts, raw_scores: false, return_text: false, truncate: true }),
    items: (answer) => answer,
    score: 'score',
  },
};

function shapeOf(protocol: RerankProtocol): RerankShape {
  return SHAPES[protocol];
}

/**
 * Extracts the scores of `count` texts, in the order of the texts.
 *
 * @throws ContentError `malformedAnswer` unless each text has exactly one finite score
 */
function scoresIn(answer: unknown, { items, score }: RerankShape, count: number): readonly number[] {
  const list = items(answer);
  if (!Array.isArray(list)) throw malformed('no list of scores');
  if (list.length !== count) throw malformed(`${list.length} scores for ${count} passages`);
  const out: (number | undefined)[] = new Array(count).fill(undefined);
  for (const item of list) {
    const [at, value] = [member(item, 'index'), member(item, score)];
    if (typeof at !== 'number' || !Number.isInteger(at) || at < 0 || at >= count || out[at] !== undefined)
      throw malformed('indexes that do not number the passages');
    if (typeof value !== 'number' || !Number.isFinite(value)) throw malformed('a score that is not a number');
    out[at] = value;
  }
  return out.map((value) => value ?? 0); // all are set, since the `count` indexes are distinct
}

/** Number of tokens that a response reports; 0 if it reports none. */
function tokensIn(answer: unknown): number {
  const tokens = member(member(answer, 'usage'), 'total_tokens');
  return typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens > 0 ? tokens : 0;
}

function malformed(what: string): ContentError {
  return new ContentError('malformedAnswer', `it answered ${what}`);
}
