import { type EffectiveAccess, effectiveAccess, type PolicySnapshot } from '../../../policy/index.js';
import type { Manifest } from '../../model/manifest/index.js';

/**
 * Access of a chain of subjects (root first) with all roles that the last can have. Only for describing policies: no
 * request is served with it.
 */
export function accessOfChain(
  chain: readonly string[],
  snapshot: PolicySnapshot,
  manifest: Manifest,
): EffectiveAccess {
  const subject = chain.at(-1) ?? '';
  const aclRoles = [...(snapshot.subjects.get(subject)?.ceiling ?? [])];
  const identity = Object.freeze({
    tenant: snapshot.tenant,
    subject,
    chain,
    roles: [],
    aclRoles,
    issuedAt: 0,
    expiresAt: 0,
    tokenId: 'none',
  });
  return effectiveAccess(identity, snapshot, manifest.catalog);
}
