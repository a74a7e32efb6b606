import { InternalError } from 'osl-compiler/errors';

let make: (claims: IdentityClaims) => Identity;

/** Who asks, as claims say it (contract, Authentication). It proves nothing: an `Identity` does. */
export interface IdentityClaims {
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

/** A caller whose token, password or certificate was verified; nothing else of a request is ever consulted. Frozen. */
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
  /** Keeps a look-alike and a copy with other claims from being an identity. */
  readonly #verified = true;

  private constructor(claims: IdentityClaims, key: symbol) {
    if (key !== KEY) throw new InternalError('an identity of an unknown maker');
    Object.assign(this, claims);
    Object.freeze(this);
  }

  static {
    make = (claims) => new Identity(claims, KEY);
  }

  /** INVARIANT: the type can be cast away; the private field cannot. */
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

/** A token from which another was made, as far as it can be revoked. */
export type ParentToken = Pick<IdentityClaims, 'chain' | 'tokenId' | 'issuedAt' | 'skewSeconds'>;

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
