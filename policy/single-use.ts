import { queryError } from 'osl-compiler';
import { isExpired } from './claims.js';
import type { Identity } from './identity.js';
import { refuse } from './token-fault.js';

export interface SingleUseOptions {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Tokens remembered at once; 10,000 unless told. */
  readonly capacity?: number;
}

/** Lets a token be used once. For publishing and admin operations; pools may reuse a token to read. */
export interface SingleUse {
  /** Takes the token of `identity`. Throws E3001 if it was taken before, E5031 if the registry is full. */
  take(identity: Identity): void;
}

const CAPACITY = 10_000;
const FULL_RETRY_SECONDS = 30;

/** Remembers token ids until `exp` + skew, when the verifier refuses them anyway. */
export function createSingleUse(options: SingleUseOptions): SingleUse {
  const taken = new Map<string, Identity>();
  const capacity = options.capacity ?? CAPACITY;

  function take(identity: Identity): void {
    const now = options.now();
    if (isExpired(identity, now)) refuse('expired');
    const key = JSON.stringify([identity.tenant, identity.tokenId]);
    const before = taken.get(key);
    if (before !== undefined && !isExpired(before, now)) refuse('used');
    if (taken.size >= capacity) forgetExpired(now);
    // Forgetting a token that is still good would let it be used again, so a full registry refuses.
    if (taken.size >= capacity) throw queryError('overloaded', { retryAfterSeconds: FULL_RETRY_SECONDS });
    taken.set(key, identity);
  }

  function forgetExpired(now: number): void {
    for (const [key, identity] of taken) if (isExpired(identity, now)) taken.delete(key);
  }

  return Object.freeze({ take });
}
