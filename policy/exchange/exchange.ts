import { hash, type KeyObject, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { queryError } from 'osl-compiler/errors';
import { type Identity, mintIdentity } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import { isExpired } from '../tokens/claims.js';
import { mintToken, type SigningKey } from '../tokens/mint.js';
import type { TokenVerifier } from '../tokens/token.js';
import { MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES } from '../tokens/token-fault.js';
import { refuseExchange } from './fault.js';
import { type IdentityTokenKind, verifyIdentityToken } from './identity-token.js';
import {
  delegated,
  type ExchangeParty,
  identityParty,
  isActorToken,
  type PartyReader,
  partyOf,
  ruleFor,
} from './party.js';

/** Value of `iss` in tokens that the exchange makes. */
export const EXCHANGE_ISSUER = 'osl-exchange';

/** A token that came with an exchange, and what it was given as. */
export interface GivenToken {
  readonly token: string;
  /** `jwt`: an actor token. */
  readonly kind: IdentityTokenKind | 'jwt';
}

export interface ExchangeRequest {
  readonly subject: GivenToken;
  /** Token of the actor; null if there is none. */
  readonly actor: GivenToken | null;
  /** True if admin roles are claimed, as far as the rule has them. */
  readonly admin: boolean;
}

export interface ExchangeParts extends PartyReader {
  readonly tenant: string;
  /** An Ed25519 private key. */
  readonly key: () => KeyObject;
}

/** Result of an exchange before its token is made. */
export interface ApprovedExchange {
  readonly identity: Identity;
  readonly by: ExchangeParty['by'];
  /** Signs the token of `identity`. @throws QueryError E3001 where it would be too large */
  mint(): Promise<string>;
}

/** Works out whom a request for an exchange is, by the rules of `snapshot`. @throws QueryError E3001, E5033 */
export async function exchange(
  { subject, actor, admin }: ExchangeRequest,
  snapshot: PolicySnapshot,
  parts: ExchangeParts,
): Promise<ApprovedExchange> {
  const first = await partyOf(subject.token, subject.kind, snapshot, parts);
  const second = actor === null ? null : await partyOf(actor.token, actor.kind, snapshot, parts);
  const party = second === null ? first : delegated(first, second);
  const identity = identityOf(party, admin ? party.roles : [], parts);
  return Object.freeze({ identity, by: party.by, mint: () => minted(identity, parts.key()) });
}

/** Identity of a party for the next 300 s, or until its token ends. @throws QueryError E3001 */
function identityOf(
  party: ExchangeParty,
  roles: readonly string[],
  { tenant, now }: Pick<ExchangeParts, 'tenant' | 'now'>,
  tokenId: string = randomUUID(),
): Identity {
  const issuedAt = Math.floor(now() / 1_000);
  const expiresAt = Math.min(party.expiresAt, issuedAt + MAX_LIFETIME_SECONDS);
  if (expiresAt <= issuedAt) refuseExchange('order');
  return mintIdentity({
    tenant,
    subject: party.chain.at(-1) ?? '',
    chain: party.chain,
    roles,
    aclRoles: party.aclRoles,
    issuedAt,
    expiresAt,
    tokenId,
    sources: party.sources,
    members: party.members,
    ...(party.claims.size > 0 && { claims: party.claims }),
  });
}

async function minted(identity: Identity, privateKey: KeyObject): Promise<string> {
  const key: SigningKey = { algorithm: 'EdDSA', privateKey };
  const {
    tenant,
    chain,
    roles,
    aclRoles,
    issuedAt,
    expiresAt,
    tokenId,
    members = [],
    claims = [],
  } = identity;
  const lifetimeSeconds = expiresAt - issuedAt;
  const token = await mintToken(
    {
      ...{ tenant, chain, roles, aclRoles, issuedAt, lifetimeSeconds, tokenId, members },
      issuer: EXCHANGE_ISSUER,
      others: Object.fromEntries(claims),
    },
    key,
  );
  if (token.length > MAX_TOKEN_BYTES) refuseExchange('large');
  return token;
}

interface DirectParts extends PartyReader {
  readonly tenant: string;
  readonly snapshot: () => PolicySnapshot | null;
  /** True if any issuer of identity tokens is trusted. */
  readonly any: () => boolean;
}

const CACHE_SIZE = 10_000;

/**
 * A verifier that takes access tokens too, where a rule of the policy says that they are good as they are: each stands
 * for what it would be exchanged for, under the policy of now, without admin roles.
 */
export function withDirectTokens(actor: TokenVerifier, parts: DirectParts): TokenVerifier {
  const verified = new LRUCache<string, { readonly snapshot: PolicySnapshot; readonly identity: Identity }>({
    max: CACHE_SIZE,
  });

  function knownDirect(token: string): Identity | null {
    if (!parts.any() || token.length > MAX_TOKEN_BYTES) return null;
    const found = verified.get(nameOf(token));
    if (found === undefined || found.snapshot !== parts.snapshot()) return null;
    // Another identity in time: the one of before is good for as long as a token.
    return parts.now() < found.identity.expiresAt * 1_000 && !isExpired(found.identity, parts.now())
      ? found.identity
      : null;
  }

  async function verify(token: string): Promise<Identity> {
    if (!parts.any()) return actor.verify(token);
    const known = knownDirect(token);
    if (known !== null) return known;
    if (actor.known(token) !== null || isActorToken(token)) return actor.verify(token);
    const snapshot = parts.snapshot();
    if (snapshot === null) throw queryError('noSnapshot', {});
    const claims = await verifyIdentityToken(token, 'access_token', parts.issuerOf, parts.now());
    const rule = ruleFor(claims, snapshot);
    if (!rule.direct) refuseExchange('direct');
    // It is the token itself that is shown: by its own id it is revoked.
    const identity = identityOf(identityParty(claims, rule), [], parts, claims.tokenId);
    verified.set(nameOf(token), { snapshot, identity });
    return identity;
  }

  return Object.freeze({
    verify,
    known: (token: string) => actor.known(token) ?? knownDirect(token),
    forget: () => {
      verified.clear();
      actor.forget();
    },
  });
}

function nameOf(token: string): string {
  return hash('sha256', token, 'base64');
}
