/**
 * Who asks, as a verified actor token says it (contract, Authentication). Frozen.
 *
 * Made only from claims that passed `readClaims`; nothing else of a request is ever consulted.
 */
export interface Identity {
  readonly tenant: string;
  /** The last element of `chain`. */
  readonly subject: string;
  /** Delegation chain, root to leaf: 1–16 distinct names. */
  readonly chain: readonly string[];
  /** Control permissions as claimed; admin operations only, and only below every subject's admin ceiling. */
  readonly roles: readonly string[];
  /** Data permissions as claimed; they count only below every subject's ceiling. */
  readonly aclRoles: readonly string[];
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  /** Seconds since the epoch; the identity is good until this plus the clock skew. */
  readonly expiresAt: number;
  /** Of the issuer's clock; 30 s unless told. */
  readonly skewSeconds?: number;
  /** The `jti` claim. */
  readonly tokenId: string;
  /** What else the token says, for conditions of grants that name a claim; absent where it says no more. */
  readonly claims?: ReadonlyMap<string, readonly string[]>;
}
