import { createHmac } from 'node:crypto';
import { queryError } from 'osl-compiler';

export interface SubscriptionLimits {
  /** Maximum number of subscriptions of this process. */
  readonly all: number;
  readonly ofSubject: number;
  /** Shortest interval, in ms. */
  readonly leastMs: number;
}

/** The open subscriptions of this process, and the key of their event ids. */
export class Subscriptions {
  readonly limits: SubscriptionLimits;
  readonly #key: Uint8Array;
  readonly #bySubject = new Map<string, number>();
  #open = 0;

  /** @param secret the same in all gateways of a tenant, so that event ids survive a restart and a change of gateway */
  constructor(limits: SubscriptionLimits, secret: Uint8Array, tenant: string) {
    this.limits = limits;
    this.#key = createHmac('sha256', secret).update(`osl subscription ${tenant}`).digest();
  }

  get open(): number {
    return this.#open;
  }

  /** Counts a subscription and returns a function that ends it. @throws QueryError E4290, E5031 */
  begin(subject: string): () => void {
    const own = this.#bySubject.get(subject) ?? 0;
    const { all, ofSubject: limit } = this.limits;
    if (own >= limit) throw queryError('tooManySubscriptions', { limit, retryAfterSeconds: RETRY_SECONDS });
    if (this.#open >= all) throw queryError('overloaded', { retryAfterSeconds: RETRY_SECONDS });
    this.#open += 1;
    this.#bySubject.set(subject, own + 1);
    return () => {
      this.#open -= 1;
      const left = (this.#bySubject.get(subject) ?? 1) - 1;
      if (left === 0) this.#bySubject.delete(subject);
      else this.#bySubject.set(subject, left);
    };
  }

  /** The key for digests of one query of one chain, whose digests thus compare with no others. */
  keyFor(chain: readonly string[], query: string): Uint8Array {
    return createHmac('sha256', this.#key)
      .update(JSON.stringify([chain, query]))
      .digest();
  }
}

const RETRY_SECONDS = 30;
