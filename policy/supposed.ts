import { randomUUID } from 'node:crypto';
import type { Identity } from './identity.js';
import type { PolicySnapshot } from './snapshot.js';

/** Who is supposed to ask, in a question about the policy itself. */
export interface HypotheticalCaller {
  /** Root first; the last asks. */
  readonly chain: readonly string[];
  /** Data roles that the token claims; null for all that the last of the chain can have. */
  readonly roles: readonly string[] | null;
  /** What else the token says; absent: nothing. */
  readonly claims?: Readonly<Record<string, readonly string[]>>;
}

/** Seconds. */
const LIFETIME = 300;

/**
 * The identity that a token for `supposed` would give. It proves nothing: for judging a policy, never for answering
 * whoever asked for it.
 */
export function supposedIdentity(
  { chain, roles, claims }: HypotheticalCaller,
  snapshot: PolicySnapshot,
): Identity {
  const subject = chain.at(-1) ?? '';
  const issuedAt = Math.floor(Date.now() / 1_000);
  return Object.freeze({
    tenant: snapshot.tenant,
    subject,
    chain: Object.freeze([...chain]),
    roles: Object.freeze([]),
    aclRoles: Object.freeze([...(roles ?? snapshot.subjects.get(subject)?.ceiling ?? [])]),
    issuedAt,
    expiresAt: issuedAt + LIFETIME,
    tokenId: randomUUID(),
    ...(claims !== undefined && { claims: new Map(Object.entries(claims)) }),
  });
}
