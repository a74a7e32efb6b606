import { PURPOSE_CLAIM } from '../access.js';
import type { ExchangedMember, Identity, ParentToken } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import type { JsonObject } from '../tokens/strict-json.js';
import { readCompact } from '../tokens/token.js';
import { TOKEN_TYPE } from '../tokens/token-fault.js';
import {
  type IdentityIssuer,
  type IdentityTokenKind,
  type IssuerClaims,
  verifyIdentityToken,
} from './identity-token.js';
import { refuseExchange } from './refusal.js';
import type { ExchangeRule } from './rule.js';

/** A party to an exchange: the subject and rights of one of its tokens. */
export interface ExchangeParty {
  /** The delegation chain, root to leaf. */
  readonly chain: readonly string[];
  /** One entry per element of `chain`. */
  readonly members: readonly ExchangedMember[];
  readonly aclRoles: readonly string[];
  /** The admin roles that it may claim. */
  readonly roles: readonly string[];
  /** Expiry, seconds since the epoch. */
  readonly expiresAt: number;
  /** Claims that grant conditions may use. */
  readonly claims: ClaimValues;
  /** The matching rule; null for an actor token. */
  readonly by: { readonly rule: string; readonly issuer: string } | null;
  /** The `sub` of the only permitted actor; null if any actor is permitted. */
  readonly mayAct: string | null;
  /** The `sub` claim; null for an actor token. */
  readonly sub: string | null;
  /** The source tokens, for revocation. */
  readonly sources: readonly ParentToken[];
}

type ClaimValues = ReadonlyMap<string, readonly string[]>;

export interface PartyReader {
  readonly issuerOf: (issuer: unknown) => IdentityIssuer | null;
  readonly verifyActor: (token: string) => Promise<Identity>;
  /** The current time, in milliseconds since the epoch. */
  readonly now: () => number;
}

/** True if the header declares an actor token. Verifies nothing. @throws QueryError E3001 */
export function isActorToken(token: string): boolean {
  return readCompact(token).header.get('typ') === TOKEN_TYPE;
}

/** @throws QueryError E3001, E5033 */
export async function partyOf(
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
export function ruleFor(claims: IssuerClaims, { exchange }: PolicySnapshot): ExchangeRule {
  return exchange.rules.find((rule) => rule.takes(claims)) ?? refuseExchange('rule');
}

/** @throws QueryError E3001 */
export function identityParty(from: IssuerClaims, rule: ExchangeRule): ExchangeParty {
  const subject = rule.subjectOf(from) ?? refuseExchange('name');
  const member = rule.memberOf(from);
  return Object.freeze({
    chain: [subject],
    members: [{ ...member, from: [from.tokenId] }],
    aclRoles: member.roles,
    roles: [...rule.adminCeiling],
    expiresAt: from.expiresAt,
    claims: rule.claimsOf(from),
    by: { rule: rule.name, issuer: from.issuer },
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
  const brought = (): ExchangedMember => ({ rule: null, roles: aclRoles, attributes: new Map() });
  const members = identity.members ?? chain.map(brought);
  return Object.freeze({
    chain,
    members: members.map((member) => ({ ...member, from: [...(member.from ?? []), tokenId] })),
    aclRoles,
    roles,
    expiresAt,
    claims: claims ?? NO_CLAIMS,
    by: null,
    mayAct: null,
    sub: null,
    sources: [
      { chain, tokenId, issuedAt, ...(skewSeconds !== undefined && { skewSeconds }) },
      ...(identity.sources ?? []),
    ],
  });
}

/** The permitted actor from claim `may_act` (RFC 8693, 4.4); if malformed, empty, which permits no actor. */
function mayAct(claims: JsonObject): string | null {
  const value = claims.get('may_act');
  if (value === undefined) return null;
  const sub = typeof value === 'object' && value !== null ? Reflect.get(value, 'sub') : undefined;
  return typeof sub === 'string' ? sub : '';
}

/** Combines two parties: `actor` acts for `subject`. @throws QueryError E3001 */
export function delegate(subject: ExchangeParty, actor: ExchangeParty): ExchangeParty {
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
    by: subject.by ?? actor.by,
    mayAct: null,
    sub: null,
    sources: [...subject.sources, ...actor.sources],
  });
}

/** The claims of the subject; a purpose must be allowed by both tokens. */
function claimsOfBoth(subject: ClaimValues, actor: ClaimValues): ClaimValues {
  const [mine, theirs] = [subject.get(PURPOSE_CLAIM), actor.get(PURPOSE_CLAIM)];
  if (theirs === undefined) return subject;
  return new Map([...subject, [PURPOSE_CLAIM, mine?.filter((p) => theirs.includes(p)) ?? theirs]]);
}
