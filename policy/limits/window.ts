export type LimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfterSeconds: number };

export const ALLOWED: LimitResult = Object.freeze({ ok: true });

/** Creates a refusal. @param waitMs time in ms until the next use is allowed */
export function refusal(waitMs: number): LimitResult {
  return Object.freeze({ ok: false, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)) });
}

/** Key of the count shared by all keys beyond `maxKeys`; other keys begin with `k`, so they cannot collide with it. */
const SURPLUS = 'surplus';

interface WindowCount {
  /** The end of the window, by the clock of `performance.now`. */
  readonly endsAt: number;
  used: number;
}

/**
 * Counts uses per key in fixed windows of `seconds`, each starting with the key's first use. Beyond `maxKeys` active
 * keys, all further keys share one count, which bounds memory.
 */
export class WindowCounter {
  /** Maximum number of uses per key and window. */
  perWindow: number;
  readonly #maxKeys: number;
  readonly #windowMs: number;
  /** The windows by key, ordered by their end. */
  readonly #counts = new Map<string, WindowCount>();

  constructor(perWindow: number, maxKeys: number, seconds = 1) {
    this.perWindow = perWindow;
    this.#maxKeys = maxKeys;
    this.#windowMs = seconds * 1_000;
  }

  take(key: string): LimitResult {
    const now = performance.now();
    const count = this.#countOf(key, now) ?? this.#startWindow(key, now);
    count.used++;
    if (count.used <= this.perWindow) return ALLOWED;
    // Limited to the window length: a rounding error of the clock would add a second.
    return refusal(Math.min(count.endsAt - now, this.#windowMs));
  }

  /** Counts one use and returns true, or returns false and counts nothing if the use is not admitted. */
  takeIfLeft(key: string): boolean {
    const now = performance.now();
    const count = this.#countOf(key, now);
    if ((count?.used ?? 0) >= this.perWindow) return false;
    (count ?? this.#startWindow(key, now)).used++;
    return true;
  }

  /** True if `take` would be refused now; counts nothing. */
  isSpent(key: string): boolean {
    return (this.#countOf(key, performance.now())?.used ?? 0) >= this.perWindow;
  }

  /** Returns the key's current count, if any. Also removes up to four expired windows, more than one use can add. */
  #countOf(key: string, now: number): WindowCount | undefined {
    let remaining = 4;
    for (const [old, { endsAt }] of this.#counts) {
      if (endsAt > now || remaining-- === 0) break;
      this.#counts.delete(old);
    }
    const ownCount = this.#counts.get(`k${key}`);
    const count = ownCount ?? (this.#counts.size < this.#maxKeys ? undefined : this.#counts.get(SURPLUS));
    return count !== undefined && count.endsAt > now ? count : undefined;
  }

  #startWindow(key: string, now: number): WindowCount {
    const ownKey = `k${key}`;
    const countKey = this.#counts.has(ownKey) || this.#counts.size < this.#maxKeys ? ownKey : SURPLUS;
    const count = { endsAt: now + this.#windowMs, used: 0 };
    this.#counts.delete(countKey);
    this.#counts.set(countKey, count);
    return count;
  }
}
