/** Tokens that are remembered at a time; they are those of admins, for some minutes each. */
const MOST = 100_000;

/** One-time tokens that were used. */
export class UsedTokens {
  readonly #now: () => number;
  readonly #since: number;
  readonly #ends = new Map<string, number>();

  /** @param now ms since the epoch */
  constructor(now: () => number = Date.now) {
    this.#now = now;
    this.#since = now();
  }

  /**
   * True if this is the first use of a token; whoever asks has used it. What was used before this process began is not
   * known, so a token that is older counts as used; and where no more can be remembered, each does.
   *
   * @param issuedAt seconds since the epoch
   * @param endsAt ms since the epoch: it is good for nothing then
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
