import { InternalError } from 'osl-compiler/errors';

let make: (claims: IdentityClaims) => Identity;

/** Claims about a caller (contract, Authentication). They prove nothing by themselves; an `Identity` does. */
export interface IdentityClaims {
  readonly tenant: string;
  /** The caller: the last element of `chain`. */
  readonly subject: string;
  /** Delegation chain, root to leaf: 1–16 distinct names. */
  readonly chain: readonly string[];
  /** The claimed admin roles, effective only within every subject's admin ceiling. */
  readonly roles: readonly string[];
  /** The claimed data roles, effective only within every subject's ceiling. */
  readonly aclRoles: readonly string[];
  /** Time of issue, seconds since the epoch. */
  readonly issuedAt: number;
  /** Expiry, seconds since the epoch; accepted until this time plus the clock skew. */
  readonly expiresAt: number;
  /** The tolerated skew of the issuer's clock in seconds; default 30. */
  readonly skewSeconds?: number;
  /** The results of the exchange for each subject of `chain`; absent for tokens that were not exchanged. */
  readonly members?: readonly ExchangedMember[];
  /** The `jti` claim. */
  readonly tokenId: string;
  /** The tokens that were exchanged for this token. */
  readonly sources?: readonly ParentToken[];
  /** Other claims, for grant conditions; absent if there are none. */
  readonly claims?: ReadonlyMap<string, readonly string[]>;
}

/** A caller whose token, password or certificate was verified. Frozen. */
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
  /** Keeps structurally equal objects and altered copies from being accepted as an identity. */
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
 * Creates the identity of a caller who proved `claims`. Not visible to other npm workspaces.
 *
 * @internal
 */
export function mintIdentity(claims: IdentityClaims): Identity {
  return make(claims);
}

/** The fields of a source token that are needed for revocation. */
export type ParentToken = Pick<IdentityClaims, 'chain' | 'tokenId' | 'issuedAt' | 'skewSeconds'>;

/** The result of an exchange for one subject, as stored in the token. */
export interface ExchangedMember {
  /** The id of the rule that mapped the claims; null if the subject presented an actor token. */
  readonly rule: string | null;
  /** The subject's data roles. The subject has no other data roles in this chain. */
  readonly roles: readonly string[];
  readonly attributes: ReadonlyMap<string, readonly string[]>;
  /** The ids of the source tokens; absent if unknown. */
  readonly from?: readonly string[];
}
