import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { FairSlots } from '../../base/threads/fair-slots.js';
import type { HttpEndpoint } from '../http.js';
import type { PassageBudget } from './budget.js';

/** Reason why one row has no value. */
const DECODER_FAULTS = [
  'endpoint',
  'malformedAnswer',
  'refusal',
  'cutOff',
  'schema',
  'quote',
  'range',
  /** The time of the question was up before this row's turn. */
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
  /** Of one answer. Default 1,024. */
  readonly maxTokens?: number;
  /** Requests at a time, of all questions together. Default 4. */
  readonly concurrency?: number;
}

/** Limits of requests to a model, beside its endpoint. */
export interface ChatBounds {
  /** Bytes of answers that are remembered; 0 for none. */
  readonly cacheBytes: number;
  /** Null for none. */
  readonly budget: PassageBudget | null;
}

const DEFAULT_CONCURRENCY = 4;

/**
 * One language model as all questions of this process share it: how many ask it at a time, what it answered before,
 * what its server understands, and how much each subject may still send it today.
 */
export class ChatModel {
  readonly endpoint: ChatEndpoint;
  readonly places: number;
  readonly turns: FairSlots;
  readonly budget: PassageBudget | null;
  /** True if its server takes `response_format`; false once an answer came without it alone. */
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

  /** Names an answer by everything that it rests on: where it was asked, the model, its limits, the prompt and the passage. */
  keyOf(body: unknown): string {
    return createHash('sha256')
      .update(JSON.stringify([this.endpoint.url, body]))
      .digest('base64');
  }

  known(key: string): string | null {
    return this.#answers?.get(key) ?? null;
  }

  /** Keeps an answer that was good. */
  keep(key: string, content: string): void {
    this.#answers?.set(key, content);
  }
}
