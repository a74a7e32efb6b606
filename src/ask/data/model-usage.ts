import { type GovernedPlan, OPERATORS, queryError } from 'osl-compiler';
import { estimatedTokens } from '../../base/token-estimate.js';
import type { DecoderUsage, RerankUsage } from './content-plane.js';

/** Counts a query's use of external models and the cache, for its outcome record. */
export class ModelUsage {
  #decoded: DecoderUsage | null = null;
  #reranked: RerankUsage | null = null;
  #embedded = 0;
  #cached: { readonly epoch: string; readonly age_ms: number } | null = null;

  add(usage: DecoderUsage): void {
    this.#decoded = this.#decoded === null ? usage : sum(this.#decoded, usage);
  }

  addReranked(usage: RerankUsage): void {
    this.#reranked = this.#reranked === null ? usage : sum(this.#reranked, usage);
  }

  /** Adds the estimated tokens of values to embed, cached or not; a value that is not a text counts as JSON. */
  addEmbedded(...values: readonly unknown[]): void {
    for (const value of values)
      this.#embedded += estimatedTokens(typeof value === 'string' ? value : JSON.stringify(value));
  }

  /** Tokens used with all models, as reported by their servers, or estimated if they report none. */
  get tokens(): number {
    const { promptTokens = 0, answerTokens = 0, unreportedTokens = 0 } = this.#decoded ?? {};
    const { tokens = 0, unreportedTokens: unreported = 0 } = this.#reranked ?? {};
    return this.#embedded + promptTokens + answerTokens + unreportedTokens + tokens + unreported;
  }

  cachedAnswer(epoch: string, ageMs: number): void {
    this.#cached = { epoch, age_ms: Math.round(ageMs) };
  }

  /** Returns the usage as JSON; null if neither a decoder, a reranker nor the cache was used. */
  detail(): string | null {
    if (this.#decoded === null && this.#reranked === null && this.#cached === null) return null;
    return JSON.stringify({
      ...(this.#decoded !== null && { decoded: decodeDetail(this.#decoded) }),
      ...(this.#reranked !== null && { reranked: rerankDetail(this.#reranked) }),
      ...(this.#cached !== null && { cached: this.#cached }),
    });
  }
}

function sum<T extends DecoderUsage | RerankUsage>(a: T, b: T): T {
  const total: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) total[name] = (total[name] ?? 0) + count;
  return total as unknown as T; // cast: both have the same fields
}

function rerankDetail({ passages, cached, requests, tokens }: RerankUsage) {
  return { passages, known: cached, requests, tokens };
}

function decodeDetail({ passages, requests, promptTokens, answerTokens, cached }: DecoderUsage) {
  return { passages, known: cached, requests, prompt_tokens: promptTokens, answer_tokens: answerTokens };
}

export interface IndexRead {
  readonly facet: string;
  /** The oldest `ReadyStore.indexedAt` among the stores that were read. */
  readonly indexedAt: string | null;
}

/** The indexes that a query has read, by facet. */
export class IndexesRead {
  readonly #times = new Map<string, string | null>();

  add(facet: string, indexedAt: string | null): void {
    const earlier = this.#times.get(facet);
    this.#times.set(facet, earlier === undefined ? indexedAt : older(earlier, indexedAt));
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

/** True if the query sends passages to an external model, which cannot be undone. */
export function sendsToModel(plan: GovernedPlan): boolean {
  return plan.runtime.length > 0 && egressOf(plan).length > 0;
}

/** Returns the kinds of models that a plan sends passages to, each with the facet and store of the passages. */
function egressOf(plan: GovernedPlan) {
  return plan.runtime.flatMap((r) => {
    if (r.kind !== 'retrieval') return [];
    const { operators, rerank, facet } = r.relation;
    const decodes = operators.some((o) => OPERATORS[o.operator].class === 'decoder');
    const from = { facet: facet.name, store: r.store };
    return [
      ...(decodes ? [{ ...from, to: 'a language model' as const }] : []),
      ...(rerank === null ? [] : [{ ...from, to: 'a reranker' as const }]),
    ];
  });
}

/** Checks, before anything is retrieved, that the policy allows sending passages to models. @throws QueryError E2101 */
export function requireModelAccess(plan: GovernedPlan): void {
  for (const { facet, store, to } of egressOf(plan)) {
    if (store !== null && !store.mayDecode) throw queryError('decodeDenied', { facet, to });
  }
}
