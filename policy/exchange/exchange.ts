import { hash, type KeyObject, randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { queryError } from 'osl-compiler/errors';
import { PURPOSE_CLAIM } from '../access.js';
import { type ExchangedMember, type Identity, mintIdentity, type ParentToken } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import { isExpired } from '../tokens/claims.js';
import { mintToken, type SigningKey } from '../tokens/mint.js';
import type { JsonObject } from '../tokens/strict-json.js';
import { readCompact, type TokenVerifier } from '../tokens/token.js';
import { MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES, TOKEN_TYPE } from '../tokens/token-fault.js';
import {
  type IdentityIssuer,
  type IdentityTokenKind,
  type IssuerClaims,
  verifyIdentityToken,
} from './identity-token.js';
import { refuseExchange } from './refusal.js';
import type { ExchangeRule } from './rule.js';

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
  readonly matchedRule: ExchangeParty['matchedRule'];
  /** Signs the token of `identity`. @throws QueryError E3001 if the token would be too large */
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
  return Object.freeze({
    identity,
    matchedRule: party.matchedRule,
    mint: () => signToken(identity, parts.key()),
  });
}

/** Creates an identity, valid for 300 s or until the party's token ends. @throws QueryError E3001 if that has ended */
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
 * Returns a verifier that also accepts access tokens directly, if a rule of the policy allows it. The identity is the
 * one that an exchange under the current policy would give, without admin roles.
 */
export function withDirectTokens(actor: TokenVerifier, parts: DirectParts): TokenVerifier {
  const cache = new LRUCache<string, { readonly snapshot: PolicySnapshot; readonly identity: Identity }>({
    max: CACHE_SIZE,
  });

  function cachedDirect(token: string): Identity | null {
    if (!parts.any() || token.length > MAX_TOKEN_BYTES) return null;
    const cached = cache.get(cacheKeyOf(token));
    if (cached === undefined || cached.snapshot !== parts.snapshot()) return null;
    // Once the cached identity has reached the maximum lifetime of a token, a new one is created.
    return parts.now() < cached.identity.expiresAt * 1_000 && !isExpired(cached.identity, parts.now())
      ? cached.identity
      : null;
  }

  async function verify(token: string): Promise<Identity> {
    if (!parts.any()) return actor.verify(token);
    const cached = cachedDirect(token);
    if (cached !== null) return cached;
    if (actor.cached(token) !== null || isActorToken(token)) return actor.verify(token);
    const snapshot = parts.snapshot();
    if (snapshot === null) throw queryError('noSnapshot', {});
    const claims = await verifyIdentityToken(token, 'access_token', parts.issuerOf, parts.now());
    const rule = ruleFor(claims, snapshot);
    if (!rule.direct) refuseExchange('direct');
    // Keeps the id of the presented token, so that revoking that token revokes this identity.
    const identity = identityOf(identityParty(claims, rule), [], parts, claims.tokenId);
    cache.set(cacheKeyOf(token), { snapshot, identity });
    return identity;
  }

  return Object.freeze({
    verify,
    cached: (token: string) => actor.cached(token) ?? cachedDirect(token),
    forget: () => {
      cache.clear();
      actor.forget();
    },
  });
}

function cacheKeyOf(token: string): string {
  return hash('sha256', token, 'base64');
}

/** A party to an exchange: the subject and rights of one of its tokens. */
interface ExchangeParty {
  /** The delegation chain, root to leaf. */
  readonly chain: readonly string[];
  /** One entry per element of `chain`. */
  readonly members: readonly ExchangedMember[];
  readonly aclRoles: readonly string[];
  /** The admin roles that the party may claim. */
  readonly roles: readonly string[];
  /** Expiry, seconds since the epoch. */
  readonly expiresAt: number;
  /** Claims that grant conditions may use. */
  readonly claims: ClaimValues;
  /** The matching rule and the token's issuer; null for an actor token. */
  readonly matchedRule: { readonly rule: string; readonly issuer: string } | null;
  /** The `sub` of the only permitted actor; null if any actor is permitted. */
  readonly mayAct: string | null;
  /** The `sub` claim; null for an actor token. */
  readonly sub: string | null;
  /** The source tokens, for revocation. */
  readonly sources: readonly ParentToken[];
}

type ClaimValues = ReadonlyMap<string, readonly string[]>;

interface PartyReader {
  readonly issuerOf: (issuer: unknown) => IdentityIssuer | null;
  readonly verifyActor: (token: string) => Promise<Identity>;
  /** The current time, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** True if the header declares an actor token. Verifies nothing. @throws QueryError E3001 */
function isActorToken(token: string): boolean {
  return readCompact(token).header.get('typ') === TOKEN_TYPE;
}

/** Verifies a token and determines the rights of its subject. @throws QueryError E3001, E5033 */
async function partyOf(
  token: string,
  kind: IdentityTokenKind | 'jwt',
  snapshot: PolicySnapshot,
  reader: PartyReader,
): Promise<ExchangeParty> {
  if (isActorToken(token)) {
    if (kind === 'id_token') refuseExchange('kind');
    return actorParty(await reader.verifyActor(token));
  }
  if (kind === 'jwt') refuseExchange('kind');
  const claims = await verifyIdentityToken(token, kind, reader.issuerOf, reader.now());
  return identityParty(claims, ruleFor(claims, snapshot));
}

/** Returns the first matching rule. @throws QueryError E3001 if none matches */
function ruleFor(claims: IssuerClaims, { exchange }: PolicySnapshot): ExchangeRule {
  return exchange.rules.find((rule) => rule.matches(claims)) ?? refuseExchange('rule');
}

/** Applies a rule to verified claims. @throws QueryError E3001 for an invalid subject name or attribute value */
function identityParty(from: IssuerClaims, rule: ExchangeRule): ExchangeParty {
  const subject = rule.subjectOf(from) ?? refuseExchange('name');
  const member = rule.memberOf(from);
  return Object.freeze({
    chain: [subject],
    members: [{ ...member, from: [from.tokenId] }],
    aclRoles: member.roles,
    roles: [...rule.adminCeiling],
    expiresAt: from.expiresAt,
    claims: rule.claimsOf(from),
    matchedRule: { rule: rule.name, issuer: from.issuer },
    mayAct: mayAct(from.claims),
    sub: String(from.claims.get('sub')),
    sources: [
      {
        chain: [subject],
        tokenId: from.tokenId,
        issuedAt: from.issuedAt,
        skewSeconds: from.skewSeconds,
      },
    ],
  });
}

const NO_CLAIMS: ClaimValues = new Map();

function actorParty(identity: Identity): ExchangeParty {
  const { chain, aclRoles, roles, expiresAt, claims, tokenId, issuedAt, skewSeconds } = identity;
  const actorMember = (): ExchangedMember => ({ rule: null, roles: aclRoles, attributes: new Map() });
  const members = identity.members ?? chain.map(actorMember);
  return Object.freeze({
    chain,
    members: members.map((member) => ({ ...member, from: [...(member.from ?? []), tokenId] })),
    aclRoles,
    roles,
    expiresAt,
    claims: claims ?? NO_CLAIMS,
    matchedRule: null,
    mayAct: null,
    sub: null,
    sources: [
      { chain, tokenId, issuedAt, ...(skewSeconds !== undefined && { skewSeconds }) },
      ...(identity.sources ?? []),
    ],
  });
}

/** The `sub` in claim `may_act` (RFC 8693, 4.4); null if absent. A malformed claim gives '', which permits nobody. */
function mayAct(claims: JsonObject): string | null {
  const value = claims.get('may_act');
  if (value === undefined) return null;
  const sub = typeof value === 'object' && value !== null ? Reflect.get(value, 'sub') : undefined;
  return typeof sub === 'string' ? sub : '';
}

/** Combines two parties: `actor` acts for `subject`. @throws QueryError E3001 */
function delegate(subject: ExchangeParty, actor: ExchangeParty): ExchangeParty {
  if (subject.mayAct !== null && subject.mayAct !== actor.sub) refuseExchange('mayAct');
  const chain = [...subject.chain, ...actor.chain];
  if (chain.length > 16 || new Set(chain).size < chain.length) refuseExchange('chain');
  return Object.freeze({
    chain,
    members: [...subject.members, ...actor.members],
    // The union is safe: each member's own roles limit the chain, and deny rules apply whichever member has the role.
    aclRoles: [...new Set([...subject.aclRoles, ...actor.aclRoles])],
    roles: subject.roles.filter((role) => actor.roles.includes(role)),
    expiresAt: Math.min(subject.expiresAt, actor.expiresAt),
    claims: claimsOfBoth(subject.claims, actor.claims),
    matchedRule: subject.matchedRule ?? actor.matchedRule,
    mayAct: null,
    sub: null,
    sources: [...subject.sources, ...actor.sources],
  });
}

/** Returns the subject's claims, with only the purposes that both tokens allow. A token without purposes allows all. */
function claimsOfBoth(subject: ClaimValues, actor: ClaimValues): ClaimValues {
  const [mine, theirs] = [subject.get(PURPOSE_CLAIM), actor.get(PURPOSE_CLAIM)];
  if (theirs === undefined) return subject;
  return new Map([...subject, [PURPOSE_CLAIM, mine?.filter((p) => theirs.includes(p)) ?? theirs]]);
}
