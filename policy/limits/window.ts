export type LimitResult = { readonly ok: true } | { readonly ok: false; readonly retryAfterSeconds: number };

const OK: LimitResult = Object.freeze({ ok: true });
/** The one key that all beyond `maxKeys` share; every other begins with `k`. */
const SURPLUS = 'surplus';

interface WindowCount {
  /** On the clock of `performance.now`, which nobody sets. */
  readonly endsAt: number;
  used: number;
}

/**
 * Counts uses of each key in fixed windows of `seconds`, each starting with the key's first use. Beyond `maxKeys` keys
 * whose windows run, all others share one count, so that memory is bounded and a flood limits itself.
 */
export class WindowCounter {
  /** Uses of a key that one window lets through. */
  perWindow: number;
  readonly #maxKeys: number;
  readonly #windowMs: number;
  /** In the order in which their windows end. */
  readonly #counts = new Map<string, WindowCount>();

  constructor(perWindow: number, maxKeys: number, seconds = 1) {
    this.perWindow = perWindow;
    this.#maxKeys = maxKeys;
    this.#windowMs = seconds * 1_000;
  }

  take(key: string): LimitResult {
    const now = performance.now();
    const count = this.#countOf(key, now) ?? this.#begin(key, now);
    count.used++;
    if (count.used <= this.perWindow) return OK;
    // No more than the window, beyond which fractions of the clock may round.
    const left = Math.min(count.endsAt - now, this.#windowMs);
    return Object.freeze({ ok: false, retryAfterSeconds: Math.max(1, Math.ceil(left / 1_000)) });
  }

  /** Counts one use where the window lets it through; where it does not, counts nothing. */
  takeIfLeft(key: string): boolean {
    const now = performance.now();
    const count = this.#countOf(key, now);
    if ((count?.used ?? 0) >= this.perWindow) return false;
    (count ?? this.#begin(key, now)).used++;
    return true;
  }

  /** True if `take` would be refused now; counts nothing. */
  isSpent(key: string): boolean {
    return (this.#countOf(key, performance.now())?.used ?? 0) >= this.perWindow;
  }

  /** The count of `key` in a window that runs. A few that have ended are forgotten, more than one use can begin. */
  #countOf(key: string, now: number): WindowCount | undefined {
    let most = 4;
    for (const [old, { endsAt }] of this.#counts) {
      if (endsAt > now || most-- === 0) break;
      this.#counts.delete(old);
    }
    const own = this.#counts.get(`k${key}`);
    const count = own ?? (this.#counts.size < this.#maxKeys ? undefined : this.#counts.get(SURPLUS));
    return count !== undefined && count.endsAt > now ? count : undefined;
  }

  #begin(key: string, now: number): WindowCount {
    const own = `k${key}`;
    const counted = this.#counts.has(own) || this.#counts.size < this.#maxKeys ? own : SURPLUS;
    const count = { endsAt: now + this.#windowMs, used: 0 };
    this.#counts.delete(counted);
    this.#counts.set(counted, count);
    return count;
  }
}
