import { queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import { CLOCK_SKEW_SECONDS } from '../../../policy/tokens/token-fault.js';
import type { RequestCall } from './call.js';

/** Registry of used tokens, shared by all processes of the server. */
export interface SingleUse {
  /**
   * Marks a token as used and returns true if this is its first use. `issuedAt` in seconds, `endsAt` in ms since the
   * epoch.
   */
  firstUse(token: string, issuedAt: number, endsAt: number): boolean | Promise<boolean>;
}

/**
 * Uses up the token of a call, which is valid for a single change, so that an intercepted token cannot be used again.
 * Sessions of the Postgres protocol are exempt.
 *
 * @throws QueryError E3001
 */
export async function consumeToken(
  parts: SingleUse,
  { credentials }: RequestCall,
  identity: Identity,
): Promise<void> {
  if (credentials.kind !== 'bearer' || credentials.token === null) return;
  const { chain, tokenId, issuedAt, expiresAt, skewSeconds = CLOCK_SKEW_SECONDS } = identity;
  const key = JSON.stringify([chain, tokenId]);
  if (!(await parts.firstUse(key, issuedAt, (expiresAt + skewSeconds) * 1_000)))
    throw queryError('tokenUsed', {});
}
