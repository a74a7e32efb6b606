/** Maximum number of remembered tokens. They belong to admins and expire within minutes. */
const MOST = 100_000;

/** Remembers one-time tokens that have been used. */
export class UsedTokens {
  readonly #now: () => number;
  readonly #since: number;
  readonly #ends = new Map<string, number>();

  /** @param now returns the current time, in ms since the epoch */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#since = now();
  }

  /**
   * Marks a token as used and returns true if this is its first use. Tokens issued before this process started count as
   * used, as do all new ones while the memory is full.
   *
   * @param issuedAt seconds since the epoch
   * @param endsAt end of validity, ms since the epoch
   */
  first(token: string, issuedAt: number, endsAt: number): boolean {
    if ((issuedAt + 1) * 1_000 <= this.#since || this.#ends.has(token)) return false;
    if (this.#ends.size >= MOST) this.#forget();
    if (this.#ends.size >= MOST) return false;
    this.#ends.set(token, endsAt);
    return true;
  }

  #forget(): void {
    const now = this.#now();
    for (const [token, endsAt] of this.#ends) if (endsAt <= now) this.#ends.delete(token);
  }
}
