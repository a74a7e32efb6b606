import { exchangedSubject } from './exchange/member.js';
import type { IdentityClaims } from './identity.js';
import type { PolicySnapshot, SubjectPolicy } from './snapshot.js';

const NOBODY: SubjectPolicy = Object.freeze({
  ceiling: new Set<string>(),
  adminCeiling: new Set<string>(),
  purposes: new Set<string>(),
  attributes: new Map<string, never>(),
  pattern: new Map<string, never>(),
});

/** Policy of each subject of the chain, root first. */
export function subjectsOf(identity: IdentityClaims, snapshot: PolicySnapshot): readonly SubjectPolicy[] {
  return identity.chain.map((name, i) => {
    const listed = snapshot.subjects.get(name);
    const member = identity.members?.[i];
    return (member === undefined ? listed : exchangedSubject(member, listed, snapshot)) ?? NOBODY;
  });
}
