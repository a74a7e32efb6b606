/**
 * Caller as stated by a verified actor token (contract, Authentication). Frozen.
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
  /** Results of the exchange for each subject of `chain`; absent for tokens that no exchange made. */
  readonly members?: readonly ExchangedMember[];
  /** The `jti` claim. */
  readonly tokenId: string;
  /** The tokens that it was made from; absent for one that says itself who asks. */
  readonly sources?: readonly ParentToken[];
  /** Other claims of the token, for conditions of grants; absent if there are none. */
  readonly claims?: ReadonlyMap<string, readonly string[]>;
}

/** A token from which another was made, as far as it can be revoked. */
export type ParentToken = Pick<Identity, 'chain' | 'tokenId' | 'issuedAt' | 'skewSeconds'>;

/** Result of an exchange for one subject of a chain, as stored in the token that it made. */
export interface ExchangedMember {
  /** The rule that made a subject of its claims, by its id; null for one that brought an actor token. */
  readonly rule: string | null;
  /** Data roles that it brings; it has no others in this chain. */
  readonly roles: readonly string[];
  readonly attributes: ReadonlyMap<string, readonly string[]>;
  /** Ids of the tokens by which it was found out; absent where that is not known. */
  readonly from?: readonly string[];
}
