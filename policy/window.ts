import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

export type Limited = { readonly ok: true } | { readonly ok: false; readonly retryAfterSeconds: number };

const OK: Limited = Object.freeze({ ok: true });
const WINDOW_SECONDS = 1;

/**
 * Counts uses of each key in fixed windows of one second, each starting with the key's first use. Of more than
 * `maxKeys` keys in a second the surplus shares one count, so that memory is bounded and a flood limits itself.
 */
export class WindowCounter {
  readonly #limiter: RateLimiterMemory;
  readonly #maxKeys: number;
  #keys = new Set<string>();
  #clearAt = 0;

  constructor(perSecond: number, maxKeys: number) {
    this.#limiter = new RateLimiterMemory({ points: perSecond, duration: WINDOW_SECONDS, keyPrefix: '' });
    this.#maxKeys = maxKeys;
  }

  set perSecond(value: number) {
    this.#limiter.points = value;
  }

  async take(key: string): Promise<Limited> {
    try {
      await this.#limiter.consume(this.#admit(key));
      return OK;
    } catch (refused) {
      if (!(refused instanceof RateLimiterRes)) throw refused;
      const seconds = Math.ceil(refused.msBeforeNext / 1_000);
      return Object.freeze({ ok: false, retryAfterSeconds: Math.max(1, seconds) });
    }
  }

  /** Keys live one window, so at most twice `maxKeys` counts exist at a time. */
  #admit(key: string): string {
    const now = Date.now();
    if (now >= this.#clearAt || now < this.#clearAt - WINDOW_SECONDS * 1_000) {
      this.#keys = new Set();
      this.#clearAt = now + WINDOW_SECONDS * 1_000;
    }
    if (this.#keys.has(key)) return `k${key}`;
    if (this.#keys.size >= this.#maxKeys) return 'surplus';
    this.#keys.add(key);
    return `k${key}`;
  }
}
