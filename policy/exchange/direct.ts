import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { queryError } from 'osl-compiler/errors';
import type { Identity } from '../identity.js';
import type { PolicySnapshot } from '../snapshot.js';
import { isExpired } from '../tokens/claims.js';
import type { TokenVerifier } from '../tokens/token.js';
import { MAX_TOKEN_BYTES } from '../tokens/token-fault.js';
import { identityOf } from './exchange.js';
import { refuseExchange } from './fault.js';
import { verifyIdentityToken } from './identity-token.js';
import { identityParty, isActorToken, type PartyReader, ruleFor } from './party.js';

export interface DirectParts extends PartyReader {
  readonly tenant: string;
  readonly snapshot: () => PolicySnapshot | null;
  /** Whether any issuer of identity tokens is trusted. */
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
    const identity = Object.freeze({
      ...identityOf(identityParty(claims, rule), [], parts),
      tokenId: claims.tokenId,
    });
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
