import type { DecoderUsage, RerankUsage } from './content-plane.js';

/** Usage of external models and the cache by one query, for its outcome record. */
export class ModelUsage {
  #all: DecoderUsage | null = null;
  #reranked: RerankUsage | null = null;
  #cached: { readonly epoch: string; readonly age_ms: number } | null = null;

  add(spent: DecoderUsage): void {
    const { passages = 0, requests = 0, promptTokens = 0, answerTokens = 0, known = 0 } = this.#all ?? {};
    this.#all = {
      passages: passages + spent.passages,
      requests: requests + spent.requests,
      promptTokens: promptTokens + spent.promptTokens,
      answerTokens: answerTokens + spent.answerTokens,
      known: known + spent.known,
    };
  }

  addReranked(spent: RerankUsage): void {
    const { passages = 0, requests = 0, tokens = 0, known = 0 } = this.#reranked ?? {};
    this.#reranked = {
      passages: passages + spent.passages,
      known: known + spent.known,
      requests: requests + spent.requests,
      tokens: tokens + spent.tokens,
    };
  }

  cachedAnswer(epoch: string, ageMs: number): void {
    this.#cached = { epoch, age_ms: Math.round(ageMs) };
  }

  /** JSON; null if neither a model nor the cache was used. */
  detail(): string | null {
    if (this.#all === null && this.#reranked === null && this.#cached === null) return null;
    return JSON.stringify({
      ...(this.#all !== null && { decoded: decodedIn(this.#all) }),
      ...(this.#reranked !== null && { reranked: this.#reranked }),
      ...(this.#cached !== null && { cached: this.#cached }),
    });
  }
}

function decodedIn({ passages, requests, promptTokens, answerTokens, known }: DecoderUsage) {
  return { passages, known, requests, prompt_tokens: promptTokens, answer_tokens: answerTokens };
}

export interface IndexRead {
  readonly facet: string;
  /** As `ReadyStore.indexedAt`: the oldest of the stores read. */
  readonly indexedAt: string | null;
}

/** Indexes read by one query, by facet. */
export class IndexesRead {
  readonly #times = new Map<string, string | null>();

  add(facet: string, indexedAt: string | null): void {
    const known = this.#times.get(facet);
    this.#times.set(facet, known === undefined ? indexedAt : older(known, indexedAt));
  }

  list(): readonly IndexRead[] {
    return [...this.#times]
      .map(([facet, indexedAt]) => ({ facet, indexedAt }))
      .sort((a, b) => (a.facet < b.facet ? -1 : 1));
  }
}

function older(a: string | null, b: string | null): string | null {
  return a === null || b === null ? null : a < b ? a : b;
}
