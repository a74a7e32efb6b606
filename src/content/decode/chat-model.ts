import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { FairSlots } from '../../base/threads/fair-slots.js';
import type { HttpEndpoint } from '../http.js';
import type { PassageBudget } from './budget.js';

/** Reason why a row has no value. */
const DECODER_FAULTS = [
  'endpoint',
  'malformedAnswer',
  'refusal',
  'cutOff',
  'schema',
  'quote',
  'range',
  /** The query's time was up before this row's turn. */
  'late',
  /** The subject's daily budget is used up. */
  'budget',
] as const;
export type DecoderFault = (typeof DECODER_FAULTS)[number];

export class DecoderFailure extends Error {
  override readonly name = 'DecoderFailure';
  readonly fault: DecoderFault;

  constructor(fault: DecoderFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

/** An OpenAI-compatible `/v1/chat/completions`. */
export interface ChatEndpoint extends HttpEndpoint {
  readonly model: string;
  /** Maximum length of one answer. Default: 1,024. */
  readonly maxTokens?: number;
  /** Maximum number of concurrent requests, over all queries. Default: 4. */
  readonly concurrency?: number;
}

/** Limits of requests to a model, besides those of its endpoint. */
export interface ChatBounds {
  /** Maximum size of the answer cache; 0 turns it off. */
  readonly cacheBytes: number;
  /** Null if unlimited. */
  readonly budget: PassageBudget | null;
}

const DEFAULT_CONCURRENCY = 4;

/**
 * One language model, shared by all queries of this process: concurrency, answer cache, capabilities of its server,
 * and what each subject may still send today.
 */
export class ChatModel {
  readonly endpoint: ChatEndpoint;
  readonly places: number;
  readonly turns: FairSlots;
  readonly budget: PassageBudget | null;
  /** True if its server accepts `response_format`; false once it answered only without it. */
  takesFormat = true;
  readonly #answers: LRUCache<string, string> | null;

  constructor(endpoint: ChatEndpoint, { cacheBytes, budget }: ChatBounds) {
    this.endpoint = endpoint;
    this.places = Math.max(1, endpoint.concurrency ?? DEFAULT_CONCURRENCY);
    this.turns = new FairSlots(this.places);
    this.budget = budget;
    this.#answers =
      cacheBytes === 0
        ? null
        : new LRUCache({ maxSize: cacheBytes, sizeCalculation: (text) => 2 * text.length + 200 });
  }

  /** Cache key of an answer: endpoint, model, limits, prompt and passage. */
  keyOf(body: unknown): string {
    return createHash('sha256')
      .update(JSON.stringify([this.endpoint.url, body]))
      .digest('base64');
  }

  known(key: string): string | null {
    return this.#answers?.get(key) ?? null;
  }

  keep(key: string, content: string): void {
    this.#answers?.set(key, content);
  }
}
