import { InternalError } from 'osl-compiler/errors';

let make: (claims: IdentityClaims) => Identity;

/** Claims about a caller (contract, Authentication). They prove nothing; an `Identity` does. */
export interface IdentityClaims {
  readonly tenant: string;
  /** The last element of `chain`. */
  readonly subject: string;
  /** Delegation chain, root to leaf: 1–16 distinct names. */
  readonly chain: readonly string[];
  /** Claimed admin roles; effective only below every subject's admin ceiling. */
  readonly roles: readonly string[];
  /** Claimed data roles; effective only below every subject's ceiling. */
  readonly aclRoles: readonly string[];
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  /** Seconds since the epoch; valid until this plus the clock skew. */
  readonly expiresAt: number;
  /** Tolerated skew of the issuer's clock; default 30. */
  readonly skewSeconds?: number;
  /** Results of the exchange for each subject of `chain`; absent for other tokens. */
  readonly members?: readonly ExchangedMember[];
  /** The `jti` claim. */
  readonly tokenId: string;
  /** Tokens from which an exchange made it. */
  readonly sources?: readonly ParentToken[];
  /** Other claims, for conditions of grants; absent if there are none. */
  readonly claims?: ReadonlyMap<string, readonly string[]>;
}

/** Caller whose token, password or certificate was verified. Frozen. */
export class Identity implements IdentityClaims {
  declare readonly tenant: string;
  declare readonly subject: string;
  declare readonly chain: readonly string[];
  declare readonly roles: readonly string[];
  declare readonly aclRoles: readonly string[];
  declare readonly issuedAt: number;
  declare readonly expiresAt: number;
  declare readonly skewSeconds?: number;
  declare readonly members?: readonly ExchangedMember[];
  declare readonly tokenId: string;
  declare readonly sources?: readonly ParentToken[];
  declare readonly claims?: ReadonlyMap<string, readonly string[]>;
  /** Prevents structurally equal objects and altered copies from counting as an identity. */
  readonly #verified = true;

  private constructor(claims: IdentityClaims, key: symbol) {
    if (key !== KEY) throw new InternalError('an identity of an unknown maker');
    Object.assign(this, claims);
    Object.freeze(this);
  }

  static {
    make = (claims) => new Identity(claims, KEY);
  }

  /** INVARIANT: checks the private field, which a type cast cannot forge. */
  static is(claims: IdentityClaims): claims is Identity {
    return #verified in claims;
  }
}

const KEY = Symbol('identity');

/**
 * Identity of a caller who proved `claims`. Other rooms do not see this function.
 *
 * @internal
 */
export function mintIdentity(claims: IdentityClaims): Identity {
  return make(claims);
}

/** Fields of a source token that are needed for revocation. */
export type ParentToken = Pick<IdentityClaims, 'chain' | 'tokenId' | 'issuedAt' | 'skewSeconds'>;

/** Result of an exchange for one subject, as stored in the token. */
export interface ExchangedMember {
  /** Id of the rule that mapped the claims; null if the subject brought an actor token. */
  readonly rule: string | null;
  /** Data roles of the subject; it has no others in this chain. */
  readonly roles: readonly string[];
  readonly attributes: ReadonlyMap<string, readonly string[]>;
  /** Ids of the source tokens; absent if unknown. */
  readonly from?: readonly string[];
}
