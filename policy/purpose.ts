import type { Identity } from './identity.js';
import type { PolicySnapshot } from './snapshot.js';
import { subjectsOf } from './subjects-of.js';

/** The claim of a token that says what it may be used for: a text, or a list of them. */
export const PURPOSE_CLAIM = 'purpose';

/**
 * What a request of `identity` is for: what its caller says; else what its token says, where that is one purpose. Null
 * where nobody says, or where policy or token do not allow it.
 */
export function purposeOf(
  identity: Identity,
  snapshot: PolicySnapshot,
  stated: string | null,
): string | null {
  const claimed = identity.claims?.get(PURPOSE_CLAIM);
  const said = stated ?? (claimed?.length === 1 ? (claimed[0] ?? null) : null);
  return allowsPurpose(identity, snapshot, said) ? said : null;
}

/** A purpose counts as a role does: below every subject's ceiling; and where the token names some, among those. */
function allowsPurpose(
  identity: Identity,
  snapshot: PolicySnapshot,
  purpose: string | null,
): purpose is string {
  const { chain, claims } = identity;
  if (purpose === null || chain.length === 0) return false;
  if (claims?.get(PURPOSE_CLAIM)?.includes(purpose) === false) return false;
  return subjectsOf(identity, snapshot).every((subject) => subject.purposes.has(purpose));
}
