import { queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import { CLOCK_SKEW_SECONDS } from '../../../policy/token-fault.js';
import type { Call } from './call.js';

/** What knows which tokens were used up, for all processes of the server. */
export interface SingleUse {
  /** Whether it is a token's first use; it is used then. `issuedAt` in seconds, `endsAt` in ms since the epoch. */
  firstUse(token: string, issuedAt: number, endsAt: number): boolean | Promise<boolean>;
}

/**
 * Uses the token of a call up: it is good for one change of what all are served, or of the server itself, so that whoever
 * reads it on its way cannot make another. A session of the wire proved who it is when it began, and has no part in this.
 *
 * @throws QueryError E3001
 */
export async function useUp(parts: SingleUse, { credentials }: Call, identity: Identity): Promise<void> {
  if (credentials.kind !== 'bearer' || credentials.token === null) return;
  const { chain, tokenId, issuedAt, expiresAt, skewSeconds = CLOCK_SKEW_SECONDS } = identity;
  const name = JSON.stringify([chain, tokenId]);
  if (!(await parts.firstUse(name, issuedAt, (expiresAt + skewSeconds) * 1_000)))
    throw queryError('tokenUsed', {});
}
