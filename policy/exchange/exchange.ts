import { hash, type KeyObject, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { queryError } from 'osl-compiler/errors';
import { type Identity, mintIdentity } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import { isExpired } from '../tokens/claims.js';
import { mintToken, type SigningKey } from '../tokens/mint.js';
import type { TokenVerifier } from '../tokens/token.js';
import { MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES } from '../tokens/token-fault.js';
import { type IdentityTokenKind, verifyIdentityToken } from './identity-token.js';
import {
  delegate,
  type ExchangeParty,
  identityParty,
  isActorToken,
  type PartyReader,
  partyOf,
  ruleFor,
} from './party.js';
import { refuseExchange } from './refusal.js';

/** The `iss` claim of exchanged tokens. */
export const EXCHANGE_ISSUER = 'osl-exchange';

/** A token presented for an exchange, and its declared type. */
export interface PresentedToken {
  readonly token: string;
  /** `jwt` stands for an actor token. */
  readonly kind: IdentityTokenKind | 'jwt';
}

export interface ExchangeRequest {
  readonly subject: PresentedToken;
  /** The actor's token; null without an actor. */
  readonly actor: PresentedToken | null;
  /** True to claim the admin roles that the rule allows. */
  readonly admin: boolean;
}

export interface ExchangeParts extends PartyReader {
  readonly tenant: string;
  /** The Ed25519 private key. */
  readonly key: () => KeyObject;
}

/** The result of an exchange before its token is signed. */
export interface ApprovedExchange {
  readonly identity: Identity;
  readonly by: ExchangeParty['by'];
  /** Signs the token of `identity`. @throws QueryError E3001 if it would be too large */
  mint(): Promise<string>;
}

/** Evaluates an exchange request by the rules of `snapshot`. @throws QueryError E3001, E5033 */
export async function exchange(
  { subject, actor, admin }: ExchangeRequest,
  snapshot: PolicySnapshot,
  parts: ExchangeParts,
): Promise<ApprovedExchange> {
  const first = await partyOf(subject.token, subject.kind, snapshot, parts);
  const second = actor === null ? null : await partyOf(actor.token, actor.kind, snapshot, parts);
  const party = second === null ? first : delegate(first, second);
  const identity = identityOf(party, admin ? party.roles : [], parts);
  return Object.freeze({ identity, by: party.by, mint: () => signToken(identity, parts.key()) });
}

/** The identity, valid for 300 s or until the party's token ends. @throws QueryError E3001 */
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

async function signToken(identity: Identity, privateKey: KeyObject): Promise<string> {
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
 * Verifier that also accepts access tokens directly, if a rule of the policy allows it. The identity is the one that
 * an exchange under the current policy would give, without admin roles.
 */
export function withDirectTokens(actor: TokenVerifier, parts: DirectParts): TokenVerifier {
  const verified = new LRUCache<string, { readonly snapshot: PolicySnapshot; readonly identity: Identity }>({
    max: CACHE_SIZE,
  });

  function knownDirect(token: string): Identity | null {
    if (!parts.any() || token.length > MAX_TOKEN_BYTES) return null;
    const found = verified.get(cacheKeyOf(token));
    if (found === undefined || found.snapshot !== parts.snapshot()) return null;
    // A new identity is made once the cached one is as old as a token may be.
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
    // Keeps the id of the presented token, so that revoking that token revokes this identity.
    const identity = identityOf(identityParty(claims, rule), [], parts, claims.tokenId);
    verified.set(cacheKeyOf(token), { snapshot, identity });
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

function cacheKeyOf(token: string): string {
  return hash('sha256', token, 'base64');
}
