import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

export type Limited = { readonly ok: true } | { readonly ok: false; readonly retryAfterSeconds: number };

const OK: Limited = Object.freeze({ ok: true });

/**
 * Counts uses of each key in fixed windows of `seconds`, each starting with the key's first use. Of more than
 * `maxKeys` keys in a window the surplus shares one count, so that memory is bounded and a flood limits itself.
 */
export class WindowCounter {
  readonly #limiter: RateLimiterMemory;
  readonly #maxKeys: number;
  readonly #windowMs: number;
  #keys = new Set<string>();
  #clearAt = 0;

  constructor(perWindow: number, maxKeys: number, seconds = 1) {
    this.#limiter = new RateLimiterMemory({ points: perWindow, duration: seconds, keyPrefix: '' });
    this.#maxKeys = maxKeys;
    this.#windowMs = seconds * 1_000;
  }

  set perWindow(value: number) {
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

  /** Whether `take` would be refused now; counts nothing. */
  async isSpent(key: string): Promise<boolean> {
    const counted = await this.#limiter.get(this.#keys.size < this.#maxKeys ? `k${key}` : this.#admit(key));
    return counted !== null && counted.msBeforeNext > 0 && counted.consumedPoints >= this.#limiter.points;
  }

  /** Keys live one window, so at most twice `maxKeys` counts exist at a time. */
  #admit(key: string): string {
    const now = Date.now();
    if (now >= this.#clearAt || now < this.#clearAt - this.#windowMs) {
      this.#keys = new Set();
      this.#clearAt = now + this.#windowMs;
    }
    if (this.#keys.has(key)) return `k${key}`;
    if (this.#keys.size >= this.#maxKeys) return 'surplus';
    this.#keys.add(key);
    return `k${key}`;
  }
}
