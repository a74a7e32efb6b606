/** Maximum number of remembered tokens. They belong to admins and expire within minutes. */
const MAX_TOKENS = 100_000;

/** Remembers one-time tokens that have been used. */
export class UsedTokens {
  readonly #now: () => number;
  readonly #startedAt: number;
  readonly #expiries = new Map<string, number>();

  /** @param now returns the current time, in ms since the epoch */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#startedAt = now();
  }

  /**
   * Marks a token as used and returns true if this is its first use. Tokens issued before this process started count as
   * used, as do all new ones while the memory is full.
   *
   * @param issuedAt seconds since the epoch
   * @param endsAt end of validity, ms since the epoch
   */
  markUsed(token: string, issuedAt: number, endsAt: number): boolean {
    if ((issuedAt + 1) * 1_000 <= this.#startedAt || this.#expiries.has(token)) return false;
    if (this.#expiries.size >= MAX_TOKENS) this.#removeExpired();
    if (this.#expiries.size >= MAX_TOKENS) return false;
    this.#expiries.set(token, endsAt);
    return true;
  }

  #removeExpired(): void {
    const now = this.#now();
    for (const [token, endsAt] of this.#expiries) if (endsAt <= now) this.#expiries.delete(token);
  }
}
