import { type KeyObject, randomUUID } from 'node:crypto';
import type { Identity } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import { mintToken, type SigningKey } from '../tokens/mint.js';
import { MAX_LIFETIME_SECONDS, MAX_TOKEN_BYTES } from '../tokens/token-fault.js';
import { refuseExchange } from './fault.js';
import type { IdentityTokenKind } from './identity-token.js';
import { delegated, type ExchangeParty, type PartyReader, partyOf } from './party.js';

/** What tokens that an exchange made say in `iss`. */
export const EXCHANGE_ISSUER = 'osl-exchange';

/** A token that came with an exchange, and what it was given as. */
export interface GivenToken {
  readonly token: string;
  /** `jwt`: an actor token. */
  readonly kind: IdentityTokenKind | 'jwt';
}

export interface ExchangeRequest {
  readonly subject: GivenToken;
  /** Who acts for the subject; null for nobody. */
  readonly actor: GivenToken | null;
  /** Whether admin roles are claimed, as far as the rule has them. */
  readonly admin: boolean;
}

export interface ExchangeParts extends PartyReader {
  readonly tenant: string;
  /** An Ed25519 private key. */
  readonly key: () => KeyObject;
}

/** What an exchange comes to, before its token is made. */
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

/** Who a party is for the next 300 s, or less where its token ends before. @throws QueryError E3001 */
export function identityOf(
  party: ExchangeParty,
  roles: readonly string[],
  { tenant, now }: Pick<ExchangeParts, 'tenant' | 'now'>,
): Identity {
  const issuedAt = Math.floor(now() / 1_000);
  const expiresAt = Math.min(party.expiresAt, issuedAt + MAX_LIFETIME_SECONDS);
  if (expiresAt <= issuedAt) refuseExchange('order');
  return Object.freeze({
    tenant,
    subject: party.chain.at(-1) ?? '',
    chain: party.chain,
    roles,
    aclRoles: party.aclRoles,
    issuedAt,
    expiresAt,
    tokenId: randomUUID(),
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
